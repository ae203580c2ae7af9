"""A few of the kills that `make kills` does by the hundred."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import sellf

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("command", "kills"),
    [
        ("report", 4),
        ("merge", 4),
        pytest.param("train", 2, marks=pytest.mark.slow),
        pytest.param("study", 4, marks=pytest.mark.slow),
    ],
)
def test_the_next_command_comes_to_the_same_and_leaves_nothing(command, kills, tmp_path):
    # In a process of its own: its children begin where nothing has been compiled yet.
    typed = ["--only", command, "--kills", str(kills), "--folder", str(tmp_path / "kills")]
    done = subprocess.run(
        [sys.executable, "-m", "tests.hostile.kills", *typed],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(Path(sellf.__file__).parents[1])},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert f"{command}: {kills} kills, 0 wrong" in done.stdout
