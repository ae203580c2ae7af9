"""`sellf completion`: scripts that shells accept, and that know what the commands know."""

import re
import shutil
import subprocess

import pytest

from sellf.cli import completion, main
from sellf.cli.commands import COMMANDS


def written(shell: str, folder) -> str:
    path = folder / f"sellf.{shell}"
    path.write_text(completion.script(shell, COMMANDS))
    return str(path)


def run(*command: str) -> list[str]:
    found = shutil.which(command[0])
    if found is None:
        pytest.skip(f"{command[0]} is not installed")
    done = subprocess.run([found, *command[1:]], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout.split()


@pytest.mark.parametrize("shell", completion.SHELLS)
def test_the_shell_finds_nothing_wrong_with_its_script(shell, tmp_path):
    run(shell, "-n", written(shell, tmp_path))


def in_bash(script: str, *words: str) -> list[str]:
    complete = (
        'source "$0"; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _sellf; echo "${COMPREPLY[@]}"'
    )
    return run("bash", "-c", complete, script, *words)


def in_fish(script: str, *words: str) -> list[str]:
    code = f"source {script}; complete -C '{' '.join(words)}' | string split -f 1 \\t"
    return run("fish", "--no-config", "-c", code)


@pytest.mark.parametrize("ask", [in_bash, in_fish])
def test_commands_options_and_values_are_completed(ask, tmp_path):
    script = written("bash" if ask is in_bash else "fish", tmp_path)
    offered = set(ask(script, "sellf", ""))
    assert offered - {"--help", "--version"} == set(COMMANDS)
    assert ask(script, "sellf", "st") == ["study"]
    assert ask(script, "sellf", "audit", "--outc") == ["--outcome"]
    groups = {"--group", "--groups", "--group-probability"}
    assert set(ask(script, "sellf", "audit", "--gr")) == groups
    assert set(ask(script, "sellf", "train", "rec")) == {"recidivism"}
    assert set(ask(script, "sellf", "train", "lending", "poc")) == {"pocar", "pocar-oracle"}
    assert ask(script, "sellf", "train", "lending", "--notion", "q") == ["qualification"]
    assert ask(script, "sellf", "study", "run", "paper-m") == ["paper-main"]


def test_every_setting_of_an_algorithm_is_a_flag_with_its_documentation(jax, capsys, monkeypatch):
    import dataclasses

    from sellf.algorithms.catalogue import ALGORITHMS
    from sellf.cli.documented import documented

    monkeypatch.setenv("COLUMNS", "300")
    for name in ("focops", "sellf-direct"):
        with pytest.raises(SystemExit):
            main(["train", "lending", name, "--help"])
        shown = capsys.readouterr().out
        texts = documented(ALGORITHMS[name].config)
        for field in dataclasses.fields(ALGORITHMS[name].config):
            assert f"--{field.name.replace('_', '-')} " in shown
            assert texts[field.name][:60] in shown


@pytest.mark.parametrize("command", COMMANDS)
def test_help_shows_no_python(command, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    with pytest.raises(SystemExit):
        main([command, "--help"])
    assert "None" not in capsys.readouterr().out


@pytest.mark.parametrize("command", COMMANDS)
def test_the_options_are_those_that_help_shows(command, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    with pytest.raises(SystemExit):
        main([command, "--help"])
    shown = set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", capsys.readouterr().out))
    known = completion._command(command, COMMANDS[command])
    names = {option.name for option in known.options}
    # Every algorithm has settings of its own; help shows those of the one that is named.
    assert names >= shown if command == "train" else names == shown
    assert all(argument.help for argument in (*known.options, *known.positionals))


def test_the_words_are_those_that_the_commands_take(jax):
    from typing import get_args

    from sellf.algorithms.catalogue import ALGORITHMS
    from sellf.audit.aipw import Model
    from sellf.cli.study import ACTIONS
    from sellf.datasets.catalogue import NAMES
    from sellf.envs.worlds import WORLDS
    from sellf.logs.dates import EVERY
    from sellf.training.loggers import TRACKERS

    words = completion.CHOICES
    assert words["train world"] == words["worlds world"] == tuple(WORLDS)
    assert set(words["train algorithm"]) == set(ALGORITHMS)
    assert words["train --log"] == tuple(TRACKERS)
    assert words["study action"] == ACTIONS
    assert words["datasets name"] == NAMES
    assert words["audit --by"] == tuple(EVERY)
    assert words["audit --model"] == get_args(Model)
    places = {
        f"{name} {place.name}"
        for name, function in COMMANDS.items()
        for known in [completion._command(name, function)]
        for place in (*known.options, *known.positionals)
    }
    assert set(words) <= places


def test_a_shell_that_is_not_known_is_answered_in_a_sentence(capsys):
    assert main(["completion", "bsh"]) == 2
    assert "did you mean 'bash'" in capsys.readouterr().err


def test_help_says_how_to_install_it(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    with pytest.raises(SystemExit):
        main(["completion", "--help"])
    shown = capsys.readouterr().out
    assert "source <(sellf completion bash)" in shown
    assert "~/.config/fish/completions/sellf.fish" in shown
