"""Algorithms, worlds and notions from outside: registered, named as code, or installed."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import sellf
from sellf.algorithms.algorithm import Algorithm
from sellf.algorithms.catalogue import ALGORITHMS
from sellf.algorithms.config import PPO
from sellf.cli import main
from sellf.envs.worlds import WORLDS
from sellf.fairness import Counts
from sellf.fairness.notions import TABLE, Definition, Rate

ROOT = Path(__file__).parent.parent.parent
FAST = {"steps": 512, "rollout": 256, "progress": False}
CODE = """
import sellf
from sellf.algorithms.algorithm import Algorithm
from sellf.algorithms.config import PPO

def village(population=120, horizon=300):
    "A small lending world."
    return sellf.make_world("lending", population=population, window=100, horizon=horizon)

plain = Algorithm("plain", PPO, "nothing is different")
number = 3
"""


@pytest.fixture
def outside(tmp_path, monkeypatch):
    """A folder with a module of one's own, and registries as they were afterwards."""
    (tmp_path / "own_things.py").write_text(CODE)
    monkeypatch.chdir(tmp_path)
    kept = [(registry, dict(registry)) for registry in (ALGORITHMS, WORLDS, TABLE)]
    yield tmp_path
    sys.modules.pop("own_things", None)
    for registry, before in kept:
        registry.clear()
        registry.update(before)


def test_what_is_registered_trains_under_its_name(outside):
    sellf.register(Algorithm("mine", PPO, "nothing is different"))
    sellf.register(
        lambda population=100: sellf.make_world("lending", population=population), "bank"
    )
    rate = Rate("mine", Counts(accepted=1), Counts(people=1), "people", ("people", "are accepted"))
    sellf.register(Definition("accepted-share", (rate,)))
    rows = {"group": ["a", "b"], "action": [1, 0], "label": [1, 1]}
    assert sellf.disparity("accepted-share", **rows).value == 1
    settings = {"population": 150, "window": 100, "horizon": 300}
    agent = sellf.train("bank", "mine", world_settings={"population": 150}, **FAST)
    assert (agent.algorithm, agent.world.name, agent.world.population) == ("mine", "bank", 150)
    sellf.register(sellf.make_world("lending", **settings), "bank-2")
    assert sellf.make_world("bank-2").horizon == 300


def test_code_is_named_on_the_command_line_and_comes_back_only_when_it_is_named_again(
    outside, capsys
):
    command = ["train", "own_things:village", "own_things:plain", "--steps", "512", "--rollout"]
    command += ["256", "--set", "population=90", "--out", "run", "--quiet"]
    assert main(command) == 0
    config = json.loads(Path("run/config.json").read_text())
    assert config["world"] == "own_things:village"
    agent = sellf.load("run")  # this program has named it
    assert agent.world.population == 90
    fresh = "import sellf, sys; sellf.load('run')"
    done = subprocess.run([sys.executable, "-c", fresh], capture_output=True, text=True)
    assert "which is code, and reading a file runs no code" in done.stderr
    assert "own_things.py" not in done.stderr


def test_a_study_s_file_names_code(outside, capsys):
    Path("own.toml").write_text(
        'name = "own"\nworlds = ["own_things:village"]\nnotions = ["opportunity"]\nsteps = 512\n'
        "seeds = 1\ndeployments = 1\n"
        '[algorithms.plain]\nalgorithm = "own_things:plain"\nsettings = { rollout = 256 }\n'
    )
    assert main(["study", "run", "own.toml", "--store", "store", "--workers", "1"]) == 0
    assert main(["study", "table", "own.toml", "--store", "store"]) == 0
    assert "plain" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["own_things:town", "ppo"], "own_things has no 'town'"),
        (["nothing_here:town", "ppo"], "cannot be imported"),
        (["own_things:number", "ppo"], "give a world, or a function that makes one"),
        (["lending", "own_things:village"], "whose config is a class of settings"),
        (["own_things:village", "ppo", "--set", "size=3"], "It is one of 'population'"),
        (["lendin", "ppo"], "did you mean 'lending'"),
    ],
)
def test_what_is_no_plug_in_is_refused_with_exit_code_2(words, says, outside, capsys):
    assert main(["train", *words, "--steps", "256", "--quiet"]) == 2
    assert says in " ".join(capsys.readouterr().err.split())


def test_names_that_are_taken_or_are_none_are_refused(outside):
    with pytest.raises(ValueError, match="there is a world 'lending' already"):
        sellf.register(sellf.make_world("lending"))
    with pytest.raises(ValueError, match="is not a valid name for a world"):
        sellf.register(lambda: None, "a world")
    with pytest.raises(ValueError, match="cannot be registered"):
        sellf.register(3)
    sellf.register(lambda: 3, "three")
    with pytest.raises(ValueError, match="three makes 3"):
        sellf.make_world("three")


def test_the_lists_and_the_completion_have_what_there_is(outside, capsys):
    assert main(["algorithms"]) == 0
    listed = capsys.readouterr().out
    assert all(name in listed for name in ALGORITHMS)
    assert main(["algorithms", "sellf-direct"]) == 0
    assert "guard_memory" in capsys.readouterr().out
    assert main(["worlds", "own_things:village"]) == 0
    assert "accept (-0.8 or +0.2, shows the outcome)" in " ".join(capsys.readouterr().out.split())
    assert main(["algorithms", "sellf-dirct"]) == 2
    assert main(["completion", "bash"]) == 0
    assert '"algorithms 2") words="sellf-direct' in capsys.readouterr().out


@pytest.mark.slow
def test_the_template_installs_and_its_own_tests_pass(tmp_path):
    """Into a folder of its own, with what is installed here; no network is needed."""
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation"]
    subprocess.run([*pip, "--target", tmp_path / "site", ROOT / "examples/plugin"], check=True)
    paths = [str(tmp_path / "site"), str(ROOT / "src")]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(paths)}

    def typed(*words):
        done = subprocess.run(
            [sys.executable, *words], cwd=tmp_path, env=environment, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr + done.stdout
        return done.stdout

    assert "clinic" in typed("-m", "sellf", "worlds")
    assert "sellf-clinic" in typed("-m", "sellf", "algorithms")
    assert "price" in typed("-m", "sellf", "algorithms", "ppo-kl")
    found = json.loads(typed("-m", "sellf", "doctor", "--json"))["plugins"]
    assert found["notions"] == {"hit-rate": "sellf_clinic:HIT_RATE"}
    assert "ppo-kl" in typed("-m", "sellf", "completion", "bash")
    train = [
        "train",
        "clinic",
        "ppo-kl",
        "--notion",
        "hit-rate",
        "--price",
        "0.5",
        "--steps",
        "512",
    ]
    typed("-m", "sellf", *train, "--rollout", "256", "--out", "run", "--quiet")
    report = json.loads(typed("-m", "sellf", "evaluate", "run", "--deployments", "1", "--json"))
    assert np.isfinite(report["reward"])
    typed("-m", "pytest", "-q", str(ROOT / "examples/plugin/tests"), "-p", "no:cacheprovider")
