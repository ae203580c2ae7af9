"""A few of the inputs that `make fuzz` tries by the thousand."""

import os

import pytest

from tests.hostile import fuzz

INPUTS = int(os.environ.get("FUZZ_INPUTS", "20"))


@pytest.mark.parametrize("kind", list(fuzz.KINDS))
def test_bad_files_are_refused_in_a_sentence_or_read_as_they_were(kind, tmp_path, monkeypatch, jax):
    monkeypatch.setenv("SELLF_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    session = fuzz.Session(tmp_path, 0)
    tally = session.fuzz(kind, range(INPUTS))
    assert tally.inputs == tally.refused + tally.accepted == INPUTS
    assert not tally.bad
    assert fuzz.Session(tmp_path, 0).tallies[kind] == tally
