"""Whatever the README tells people to type is typed here."""

import io
import re
import runpy
import shlex
import shutil
import subprocess
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import pytest

from sellf.cli import main

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
STEPS = 4096
"""What a training takes here instead of half a million: two rollouts show that it runs."""
LONG = ("study run", "study table", "study figures", "report paper", "train lending sellf", "demo")
"""Commands that take minutes, or need what such a one has made: they are parsed, not run."""


OUTPUT = re.compile(
    r"^```(?P<language>sh|python)\n(?P<code>(?:(?!^```$).)*)^```\n\n<!-- output -->\n"
    r"```text\n(?P<text>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)


def shown(language: str) -> dict[str, str]:
    """Return the blocks whose output the page shows, with that output."""
    found = OUTPUT.finditer(README)
    return {each["code"]: each["text"] for each in found if each["language"] == language}


def blocks(language: str, text: str = README) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def commands(text: str = README) -> list[list[str]]:
    lines = "\n".join(blocks("sh", text)).replace("\\\n", " ").splitlines()
    return [words for line in lines if (words := shlex.split(line, comments=True))]


def targets() -> list[str]:
    return re.findall(r"^([a-z][a-z-]*):", MAKEFILE, re.MULTILINE)


def test_the_python_blocks_run_from_top_to_bottom_and_give_what_they_say(
    jax, tmp_path, monkeypatch, capsys
):
    pytest.importorskip("duckdb")
    from sellf.cli.lending_log import as_csv
    from sellf.training import loop

    assert loop.train.__kwdefaults__ is not None
    monkeypatch.setitem(loop.train.__kwdefaults__, "steps", STEPS)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "loans.csv").write_bytes(as_csv())  # as the commands above leave it
    names: dict[str, Any] = {}
    found = blocks("python")
    assert len(found) >= 4
    compared = 0
    for block in found:
        with redirect_stdout(io.StringIO()) as printed:
            exec(compile(block, "README.md", "exec"), names)
        if block in shown("python"):
            assert printed.getvalue().rstrip() == shown("python")[block].rstrip()
            compared += 1
    assert compared == len(shown("python")) >= 3
    assert names["audit"].verdict in ("fair", "unfair", "undetermined")
    assert (tmp_path / "agent").is_dir()


def test_every_command_is_known():
    found = [*commands(), *commands((ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"))]
    assert {words[0] for words in found} <= {"make", "sellf", "."}
    for words in found:
        if words[0] == "make":
            assert words[1] in targets(), f"{shlex.join(words)}: the Makefile has no such target"
    for target in re.findall(r"`make ([a-z-]+)`", README):
        assert target in targets()


def test_the_commands_run(jax, tmp_path, monkeypatch, capsys):
    pytest.importorskip("duckdb")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SELLF_STORE", raising=False)
    typed = [words[1:] for words in commands() if words[0] == "sellf"]
    assert len(typed) >= 8
    outputs = {
        tuple(commands(f"```sh\n{code}```\n")[-1][1:]): text for code, text in shown("sh").items()
    }
    assert outputs
    ran = [words for words in typed if not " ".join(words).startswith(LONG)]
    for words in ran:
        short = ["--steps", str(STEPS)] if words[0] == "train" and "--resume" not in words else []
        asked = words[: words.index(">")] if ">" in words else words
        assert main([*asked, *short]) == 0, shlex.join(words)
        printed = capsys.readouterr().out
        assert printed or words[0] == "train"
        if tuple(words) in outputs:
            assert printed.rstrip() == outputs.pop(tuple(words)).rstrip()
    assert outputs == {}
    # The others must at least be understood: they get as far as the work.
    reached = []
    monkeypatch.setattr("sellf.cli.train.train", lambda *_: reached.append("train"))
    monkeypatch.setattr("sellf.cli.study.act", lambda *_, **__: reached.append("study") or 0)
    monkeypatch.setattr("sellf.cli.report.write", lambda *_, **__: reached.append("report"))
    monkeypatch.setattr("sellf.cli.demo.show_log", lambda *_: None)
    monkeypatch.setattr("sellf.cli.demo.train_and_compare", lambda *_: reached.append("demo"))
    long = [words for words in typed if words not in ran]
    for words in long:
        assert main(words) == 0, shlex.join(words)
    assert reached == [words[0] for words in long]


def test_the_tool_that_types_the_readme_types_every_block(tmp_path):
    typist = runpy.run_path(str(ROOT / "tools" / "type_readme.py"))
    script = typist["script"](typist["sections"](README))
    for language in ("sh", "python"):
        assert all(block in script for block in blocks(language))
    shorter = typist["script"](typist["sections"](typist["without_tests"](README)))
    assert "make demo" in shorter
    assert "make test" not in shorter
    (tmp_path / "script").write_text(script)
    subprocess.run(["bash", "-n", str(tmp_path / "script")], check=True)


def test_studies_that_are_named_exist():
    from sellf.studies import spec

    for words in commands():
        if words[:3] == ["sellf", "study", "run"]:
            assert spec.load(words[3], "--quick" in words).name == words[3]


def test_links_to_files_lead_somewhere():
    links = re.findall(r"\]\((?!https?:|#)([^)#]+)", README)
    assert links
    for link in links:
        assert (ROOT / link).exists(), link


@pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")
def test_every_target_can_be_made_in_a_fresh_clone_and_is_listed_by_help(tmp_path):
    for name in ("Makefile", "pyproject.toml", "constraints.txt"):
        shutil.copy(ROOT / name, tmp_path)
    shutil.copytree(ROOT / "locks", tmp_path / "locks")

    def make(*arguments: str) -> str:
        command = ["make", "--no-print-directory", *arguments]
        return subprocess.run(
            command, cwd=tmp_path, capture_output=True, text=True, check=True
        ).stdout

    listed = re.findall(r"^  make (\S+)", make("help"), re.MULTILINE)
    assert sorted(listed) == sorted(targets())
    phony = re.search(r"^\.PHONY: (.*)", MAKEFILE, re.MULTILINE)
    assert phony is not None
    assert sorted(phony[1].split()) == sorted(targets())
    for target in targets():
        planned = make("--dry-run", target)
        # Nothing is there yet, so whatever needs an environment sets one up first.
        assert target in ("help", "clean") or "-m venv" in planned
