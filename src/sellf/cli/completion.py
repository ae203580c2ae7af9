"""`sellf completion`: what a shell needs to know to complete commands, options and their values.

The scripts are made from the functions in `commands.py`, so they know every option, and hold all
they need: pressing Tab starts no Python.
"""

import inspect
import re
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_type_hints

import tyro

from sellf.audit.verdict import AUDITED
from sellf.fairness.checks import one_of
from sellf.fairness.notions import NOTIONS

SHELLS = ("bash", "zsh", "fish")
TRAINED = tuple(name for name in NOTIONS if name != "demographic")
WORLDS = ("lending", "recidivism", "school", "school-continuous")
ALGORITHMS = (
    *("sellf-direct", "sellf", "sellf-semi", "sellf-relu"),
    *("ppo", "pocar", "pocar-oracle", "elbert", "focops"),
)
WORDS: dict[str, tuple[str, ...]] = {
    "audit --notion": (*AUDITED, "all"),
    "audit --model": ("boosting", "logistic"),
    "audit --by": ("day", "week", "month", "quarter", "year"),
    "completion shell": SHELLS,
    "study action": ("list", "run", "status", "table", "figures", "merge"),
    "study --engine": ("local", "ray"),
    "train world": WORLDS,
    "train algorithm": ALGORITHMS,
    "train --notion": TRAINED,
    "train --log": ("tensorboard", "wandb", "mlflow"),
    "worlds world": WORLDS,
}
"""What may be typed where there is a choice; written out, since asking would start JAX."""


@dataclass(frozen=True)
class Place:
    """An option, or a word without one, and what may stand there."""

    name: str
    help: str
    value: bool = True
    """Whether something follows the option."""
    words: tuple[str, ...] = ()
    """What that may be; nothing in particular, if empty."""


@dataclass(frozen=True)
class Command:
    """A command with its options, and its words in order."""

    name: str
    help: str
    options: tuple[Place, ...]
    words: tuple[Place, ...]


def script(shell: str, commands: Mapping[str, Callable[..., Any]]) -> str:
    """Return the script that makes a shell complete these commands."""
    one_of("shell", shell, SHELLS)
    known = [_command(name, function) for name, function in commands.items()]
    return {"bash": _bash, "zsh": _zsh, "fish": _fish}[shell](known)


def _command(name: str, function: Callable[..., Any]) -> Command:
    text = inspect.getdoc(function) or ""
    # An argument's sentence may go on, indented further, on the next line.
    found = re.findall(r"^ {4}(\w+): (.*(?:\n {8}.*)*)", text, re.MULTILINE)
    helps = {key: " ".join(sentence.split()) for key, sentence in found}
    options, words = [], []
    for key, kind in get_type_hints(function, include_extras=True).items():
        if key == "return":
            continue
        marks: tuple[Any, ...] = getattr(kind, "__metadata__", ())
        if tyro.conf.Positional in marks:
            words.append(Place(key, helps[key], words=_words(name, key)))
            continue
        flag, flags = f"--{key.replace('_', '-')}", [kind, getattr(kind, "__origin__", kind)]
        options.append(Place(flag, helps[key], bool not in flags, _words(name, flag)))
        if bool in flags and tyro.conf.FlagCreatePairsOff not in marks:
            options.append(Place(f"--no-{flag[2:]}", f"not: {helps[key]}", value=False))
    options.append(Place("--help", "show all of this", value=False))
    return Command(name, text.partition("\n")[0], tuple(options), tuple(words))


def _words(command: str, place: str) -> tuple[str, ...]:
    if f"{command} {place}" == "study name":
        builtin = Path(__file__).parent.parent / "studies" / "builtin"
        return tuple(sorted(file.stem for file in builtin.glob("*.toml")))
    return WORDS.get(f"{command} {place}", ())


def _bash(commands: list[Command]) -> str:
    after = [
        f'    "{c.name} {o.name}") words="{" ".join(o.words)}" ;;'
        for c in commands
        for o in c.options
        if o.value
    ]
    options = [
        f'        {c.name}) words="{" ".join(o.name for o in c.options)}" ;;' for c in commands
    ]
    places = [
        f'        "{c.name} {at}") words="{" ".join(place.words)}" ;;'
        for c in commands
        for at, place in enumerate(c.words, 2)
        if place.words
    ]
    names = " ".join(c.name for c in commands)
    return "\n".join(
        [
            "_sellf() {",
            '  local current="${COMP_WORDS[COMP_CWORD]}" command="${COMP_WORDS[1]}" words=""',
            f'  if [ "$COMP_CWORD" -eq 1 ]; then words="{names} --help --version"',
            '  else case "$command ${COMP_WORDS[COMP_CWORD-1]}" in',
            *after,
            "    *)",
            '      if [[ "$current" == -* ]]; then case "$command" in',
            *options,
            '      esac; else case "$command $COMP_CWORD" in',
            *places,
            "      esac; fi ;;",
            "  esac; fi",
            '  COMPREPLY=($(compgen -W "$words" -- "$current"))',
            "}",
            "# Where nothing fits, files do.",
            "complete -o default -F _sellf sellf",
            "",
        ]
    )


def _zsh(commands: list[Command]) -> str:
    def text(sentence: str) -> str:
        return re.sub(r"([\[\]:\\])", r"\\\1", sentence)

    def option(place: Place) -> str:
        action = f"({' '.join(place.words)})" if place.words else "_files"
        follows = f":{place.name[2:]}:{action}" if place.value else ""
        return shlex.quote(f"*{place.name}[{text(place.help)}]{follows}")

    def word(at: int, place: Place) -> str:
        listed = f"({' '.join(place.words)})"
        if place.name == "name":  # a study may be a file too
            listed = f"{{_alternative 'names\\:study\\:{listed}' 'files\\:file\\:_files'}}"
        return shlex.quote(f"{at}:{place.name}:{listed if place.words else '_files'}")

    lines = ["#compdef sellf", "_sellf() {", "  local -a commands", "  commands=("]
    lines += [f"    {shlex.quote(f'{c.name}:{text(c.help)}')}" for c in commands]
    lines += [
        "  )",
        "  if (( CURRENT == 2 )); then _describe command commands; return; fi",
        "  local command=$words[2]",
        "  shift words; (( CURRENT-- ))",
        "  case $command in",
    ]
    for command in commands:
        places = [word(at, place) for at, place in enumerate(command.words, 1)]
        specs = " \\\n      ".join([*map(option, command.options), *places])
        lines.append(f"    {command.name}) _arguments \\\n      {specs} ;;")
    lines += [
        "  esac",
        "}",
        "# Read from a folder of completions it is called; sourced, it is made known.",
        'if [[ $funcstack[1] == _sellf ]]; then _sellf "$@"; else compdef _sellf sellf; fi',
        "",
    ]
    return "\n".join(lines)


def _fish(commands: list[Command]) -> str:
    def quoted(sentence: str) -> str:
        return "'" + sentence.replace("\\", "\\\\").replace("'", "\\'") + "'"

    lines = ["complete -c sellf -n __fish_use_subcommand -f"]
    lines += [
        f"complete -c sellf -n __fish_use_subcommand -l {name}" for name in ("help", "version")
    ]
    for command in commands:
        start = f"complete -c sellf -n __fish_use_subcommand -a {command.name}"
        lines.append(f"{start} -d {quoted(command.help)}")
        chosen = f"__fish_seen_subcommand_from {command.name}"
        for place in command.options:
            values = f" -x -a {quoted(' '.join(place.words))}" if place.words else " -r"
            follows = values if place.value else ""
            lines.append(
                f"complete -c sellf -n '{chosen}' -l {place.name[2:]}{follows} "
                f"-d {quoted(place.help)}"
            )
        for at, place in enumerate(command.words, 2):
            if place.words:
                here = f"{chosen}; and test (count (commandline -opc)) -eq {at}"
                files = "" if place.name == "name" else " -f"  # a study may be a file too
                lines.append(
                    f"complete -c sellf -n '{here}'{files} -a {quoted(' '.join(place.words))}"
                )
    return "\n".join([*lines, ""])
