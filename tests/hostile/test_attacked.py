"""What an attack from outside found: each was a file, a name or a link that did harm."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import sellf
from sellf.cli import main
from sellf.errors import InputError
from sellf.text import plain_json

SMALL = {"population": 300, "window": 200}
SHORT = {"steps": 1024, "rollout": 256, "epochs": 2, "progress": False}
AUDIT = ["--group", "g", "--decision", "d", "--outcome", "y", "--propensity", "p", "--seed", "1"]


def log(path, names, change=lambda text: text):
    """A log of groups that are treated very differently."""
    rng = np.random.default_rng(0)
    chances = np.linspace(0.1, 0.9, len(names))
    rows = ["g,d,y,p"]
    for _ in range(600):
        k = rng.integers(len(names))
        d = int(rng.random() < chances[k])
        y = int(rng.random() < 0.6) if d else ""
        rows.append(f"{names[k]},{d},{y},{chances[k]}")
    path.write_bytes(change("\n".join(rows) + "\n").encode())
    return str(path)


def test_names_that_are_very_large_numbers_are_not_taken_for_one(tmp_path, capsys):
    names = ["10000000000000000000000001", "10000000000000000000000002", "7"]
    assert main(["audit", log(tmp_path / "big.csv", names), *AUDIT]) == 2
    assert "too large a number" in capsys.readouterr().err
    words = log(tmp_path / "words.csv", [f"x{name}" for name in names])
    assert main(["audit", words, *AUDIT]) == 0
    assert "UNFAIR" in capsys.readouterr().out


def test_decimals_keep_all_of_their_digits(tmp_path):
    pa = pytest.importorskip("pyarrow")
    from decimal import Decimal

    import pyarrow.parquet as pq

    large = [Decimal(10**25 + k % 2) for k in range(400)]
    accepted = [k % 3 % 2 for k in range(400)]
    table = {"g": pa.array(large, pa.decimal128(38, 0)), "d": accepted}
    pq.write_table(pa.table(table), tmp_path / "log.parquet")
    found = sellf.audit(
        tmp_path / "log.parquet", group="g", decision="d", notion="demographic", seed=1
    )
    assert sorted(map(int, found.by_group)) == [10**25, 10**25 + 1]


def test_a_hole_of_zero_bytes_is_no_group(tmp_path, capsys):
    holed = log(tmp_path / "log.csv", ["a", "b"], lambda t: t[:2000] + "\x00" * 4096 + t[2000:])
    assert main(["audit", holed, *AUDIT]) == 2
    assert "Traceback" not in capsys.readouterr().err


def test_times_that_no_python_value_can_hold_are_told(tmp_path, capsys):
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    accepted = [k % 3 % 2 for k in range(400)]
    group = pa.array([k % 2 for k in range(400)], pa.time64("ns"))
    table = pa.table({"g": group, "d": accepted, "y": [1 if d else None for d in accepted]})
    pq.write_table(table, tmp_path / "t.parquet")
    code = main(["audit", str(tmp_path / "t.parquet"), *AUDIT[:6], "--seed", "1"])
    assert code in (0, 2)


@pytest.fixture(scope="module")
def runs(tmp_path_factory, jax):
    """Two runs of the same shape, in worlds that differ."""
    folder = tmp_path_factory.mktemp("runs")
    for name, cost in (("one", 0.3), ("two", 0.8)):
        settings = {"world_settings": SMALL | {"cost": cost}, "out": folder / name, "seed": 3}
        sellf.train("lending", "ppo", **settings, **SHORT)
    return folder


def copied(runs, tmp_path):
    import shutil

    return Path(shutil.copytree(runs / "one", tmp_path / "run"))


def test_a_run_does_not_go_on_from_another_run_s_checkpoint(runs, tmp_path, capsys):
    folder = copied(runs, tmp_path)
    before = (folder / "agent.safetensors").read_bytes()
    for name in ("checkpoint.safetensors", "metrics.jsonl"):
        (folder / name).write_bytes((runs / "two" / name).read_bytes())
    assert main(["train", "--resume", str(folder), "--quiet"]) == 2
    assert "belongs to another run" in capsys.readouterr().err
    assert (folder / "agent.safetensors").read_bytes() == before


@pytest.mark.parametrize(
    "name", ["agent.safetensors", "metrics.jsonl", "checkpoint.safetensors", "config.json"]
)
def test_a_run_s_links_are_not_followed(runs, tmp_path, name, capsys):
    folder = copied(runs, tmp_path)
    precious = tmp_path / "precious"
    precious.write_bytes((folder / name).read_bytes())
    (folder / name).unlink()
    (folder / name).symlink_to(precious)
    before = precious.read_bytes()
    for command in (
        ["train", "--resume", str(folder), "--quiet"],
        ["evaluate", str(folder), "--deployments", "1", "--json"],
    ):
        assert main(command) == 2
        assert "is a link" in capsys.readouterr().err
    assert precious.read_bytes() == before


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_pipe_in_a_run_is_not_waited_for(runs, tmp_path, capsys):
    folder = copied(runs, tmp_path)
    (folder / "checkpoint.safetensors").unlink()
    os.mkfifo(folder / "checkpoint.safetensors")
    assert main(["evaluate", str(folder), "--deployments", "1", "--json"]) == 2
    assert "not a regular file" in capsys.readouterr().err


def test_links_that_lead_to_themselves_and_names_that_are_no_text(tmp_path, capsys):
    path = log(tmp_path / "log.csv", ["a", "b"])
    (tmp_path / "loop").symlink_to("loop")
    assert main(["audit", path, *AUDIT, "--html", str(tmp_path / "loop")]) == 2
    assert "leads back to itself" in capsys.readouterr().err
    # As bytes, as a shell hands them over.
    command = [sys.executable, "-m", "sellf", "audit", path, *AUDIT, "--html"]
    done = subprocess.run(
        [*map(os.fsencode, command), os.fsencode(tmp_path) + b"/o\xff.html"],
        capture_output=True,
        env=os.environ | {"PYTHONPATH": str(Path(sellf.__file__).parents[1])},
    )
    assert done.returncode in (0, 2)
    assert b"Traceback" not in done.stderr


def test_json_on_a_terminal_commands_nothing(tmp_path, capsys):
    names = ["a\u009b31m", "b\u202e"]
    assert main(["audit", log(tmp_path / "log.csv", names), *AUDIT, "--json"]) == 0
    printed = capsys.readouterr().out
    assert "\u009b" not in printed
    assert "\u202e" not in printed
    assert {one["group"] for one in json.loads(printed)["by_group"]} == set(names)
    assert json.loads(plain_json(json.dumps(names, ensure_ascii=False))) == names


def test_a_store_s_runs_are_not_links(tmp_path):
    from sellf.studies.run import run
    from sellf.studies.store import merge, open_store
    from tests.studies.tiny import FakeEngine, study

    kept = open_store(tmp_path / "from")
    run(study(), kept, FakeEngine())
    name = sorted(kept.done())[0]
    kept.path(name).rename(tmp_path / "elsewhere")
    kept.path(name).symlink_to(tmp_path / "elsewhere")
    came, _, damaged = merge(open_store(tmp_path / "into"), tmp_path / "from")
    assert came == len(kept.done()) - 1
    assert "is a link" in damaged[0]
    with pytest.raises(InputError, match="seed"):
        sellf.train("lending", "ppo", seed=2**32, **SHORT)
