"""Seeds: one that cannot be told from another is refused, before anything is written."""

import numpy as np
import pytest

import sellf
from sellf.cli import main
from sellf.errors import InputError

BAD = [2**32, 2**63 - 1, 10**400, -1, 1.5, float("nan"), float("inf"), "1", True, None]


@pytest.mark.parametrize("value", BAD, ids=lambda value: str(value)[:20])
def test_no_agent_is_trained_under_another_s_seed(value, tmp_path, jax):
    options = {"steps": 512, "out": tmp_path / "run", "progress": False}
    with pytest.raises(
        InputError, match=r"seed is .*: give a whole number from 0 to 4,294,967,295"
    ):
        sellf.train("lending", "ppo", seed=value, **options)
    with pytest.raises(InputError, match="seed is"):
        sellf.train("lending", "ppo", seeds=[0, value], steps=512, progress=False)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("value", ["4294967296", str(2**63 - 1), "9" * 400, "-1"])
def test_the_command_line_refuses_them_with_a_sentence(value, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["train", "lending", "ppo", "--seed", value, "--steps", "512"]) == 2
    assert "give a whole number from 0" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_deployments_have_seeds_of_their_own_and_a_number(jax):
    from sellf.training.evaluation import evaluate

    for value in BAD:
        with pytest.raises(InputError, match="seed is"):
            evaluate(None, seed=value)
    for value in (0, 1.5, 10**400, float("inf"), True):
        with pytest.raises(InputError, match="deployments is"):
            evaluate(None, deployments=value)


@pytest.mark.parametrize("value", [7, 7.0, np.int64(7), np.float32(7)])
def test_whole_numbers_of_any_kind_are_taken(value):
    from sellf.fairness.checks import seed, whole

    assert whole("steps", value, low=1, high=10) == 7
    assert type(seed("seed", value)) is int


@pytest.mark.parametrize("value", [10**400, 1.5, 0, float("nan")], ids=lambda v: str(v)[:9])
def test_steps_are_whole_and_can_be_counted(value, jax):
    with pytest.raises(InputError, match="steps is"):
        sellf.train("lending", "ppo", steps=value, progress=False)
