"""Several studies under one name: run together, each run once, one report at the end."""

import pytest

from sellf.cli import main
from sellf.studies import collection, spec
from sellf.studies.collection import Collection
from sellf.studies.progress import Progress
from sellf.studies.run import run
from sellf.studies.status import status
from sellf.studies.store import open_store
from tests.studies.tiny import TEXT, FakeEngine, study

MORE = TEXT.replace('"tiny"', '"more"').replace("[1, 5]", "[1, 5, 10]")
TIMED = (
    TEXT[: TEXT.index("[algorithms.sellf]")].replace('"tiny"', '"timed"').replace("seeds = 3", "")
)


def parts():
    timed = spec.parse(TIMED.replace("steps", "seeds = 1\nalone = true\nsteps"), "timed.toml")
    return study(), study(MORE), timed


@pytest.fixture
def paper(monkeypatch):
    """The paper, in three tiny studies that an engine makes up."""
    made = Collection("paper", "everything", parts())
    monkeypatch.setattr(collection, "load", lambda name, quick=False: made)
    engines = []

    def make(kind, workers, address):
        engines.append(FakeEngine())
        return engines[-1]

    monkeypatch.setattr("sellf.studies.engines.make", make)
    return engines


def test_the_paper_is_every_study_that_comes_with_sellf_and_each_loads():
    found = collection.load("paper", quick=True)
    assert found is not None
    assert {one.name for one in found.studies} == set(spec.builtin())
    assert collection.load("paper-main") is None


def test_a_run_that_two_studies_ask_for_is_done_once(tmp_path):
    first, second, _ = parts()
    kept, engine = open_store(tmp_path), FakeEngine()
    tally = run([first, second], kept, engine)
    assert tally.complete
    assert len(set(engine.did)) == len(engine.did) == tally.total
    again = FakeEngine()
    assert run([first, second], kept, again).complete
    assert again.did == []
    for one in (first, second):
        rows = status(one, kept).rows
        assert sum(row.done for row in rows) == sum(row.total for row in rows)


def test_all_of_it_runs_from_one_command_and_ends_with_a_report(
    paper, tmp_path, monkeypatch, capsys
):
    pytest.importorskip("jinja2")
    monkeypatch.chdir(tmp_path)
    assert main(["study", "run", "paper", "--store", "kept"]) == 0
    assert [len(set(engine.did)) == len(engine.did) > 0 for engine in paper] == [True, True]
    printed = capsys.readouterr().out
    assert printed.rstrip().endswith("report.html")
    page = (tmp_path / "results/paper/report.html").read_text()
    for one in parts():
        assert f"Study: {one.name}" in page
        assert (tmp_path / "results/paper" / one.name / "table.md").exists()
    assert main(["study", "status", "paper", "--store", "kept"]) == 0
    shown = capsys.readouterr().out
    assert all(one.name in shown for one in parts())


def test_what_is_left_is_told_from_runs_alike(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("sellf.studies.progress.EVERY", 0.0)
    progress = Progress("paper")
    run(list(parts()[:2]), open_store(tmp_path), FakeEngine(), progress)
    said = capsys.readouterr().err
    assert "paper: " in said
    assert "left" in said
    assert progress.took_seconds == {
        ("lending", "ppo"): [1.5] * 3,
        ("lending", "sellf"): [1.5] * len(progress.took_seconds["lending", "sellf"]),
    }
