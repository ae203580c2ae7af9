"""`sellf completion`: scripts with which shells complete commands, options and their values.

The scripts are generated from the functions in `commands.py`, so they contain every option, and
they are self-contained: pressing Tab does not start Python.
"""

import inspect
import re
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass, is_dataclass
from importlib.metadata import entry_points
from importlib.util import find_spec
from pathlib import Path
from typing import Any, get_type_hints

import tyro

from sellf.cli.documented import documented
from sellf.fairness.checks import one_of
from sellf.fairness.notions import NOTIONS, define

SHELLS = ("bash", "zsh", "fish")
TRAINED = tuple(name for name in NOTIONS if define(name).needs_label)
WORLDS = (
    *("lending", "lending-amounts", "recidivism", "school", "school-continuous"),
    *("attention", "admission"),
)
ALGORITHMS = (
    *("sellf-direct", "sellf-plan", "sellf", "sellf-semi", "sellf-relu"),
    *("ppo", "pocar", "pocar-oracle", "elbert", "focops"),
    *("ppo-lagrangian", "pid-lagrangian", "cup"),
)
CHOICES: dict[str, tuple[str, ...]] = {
    "algorithms algorithm": ALGORITHMS,
    "audit --notion": (*NOTIONS, "all"),
    "audit --model": ("boosting", "logistic"),
    "audit --by": ("day", "week", "month", "quarter", "year"),
    "completion shell": SHELLS,
    "datasets name": ("compas", "nypd-stops", "amex", "adult"),
    "frontier world": WORLDS,
    "frontier --notion": NOTIONS,
    "study action": ("list", "run", "status", "frontier", "table", "figures", "export", "merge"),
    "study --engine": ("local", "ray"),
    "train world": WORLDS,
    "train algorithm": ALGORITHMS,
    "train --notion": TRAINED,
    "train --log": ("tensorboard", "wandb", "mlflow"),
    "worlds world": WORLDS,
}
"""The values of arguments with a fixed choice; written out, since looking them up imports JAX."""


@dataclass(frozen=True)
class Argument:
    """An option or a positional argument, and the values that it takes."""

    name: str
    help: str
    value: bool = True
    """Whether the option takes a value."""
    choices: tuple[str, ...] = ()
    """The valid values; empty if any value is allowed."""


@dataclass(frozen=True)
class Command:
    """A command with its options, and its positional arguments in order."""

    name: str
    help: str
    options: tuple[Argument, ...]
    positionals: tuple[Argument, ...]


def script(shell: str, commands: Mapping[str, Callable[..., Any]]) -> str:
    """Return the script with which a shell completes these commands."""
    one_of("shell", shell, SHELLS)
    known = [_command(name, function) for name, function in commands.items()]
    return {"bash": _bash, "zsh": _zsh, "fish": _fish}[shell](known)


def _command(name: str, function: Callable[..., Any]) -> Command:
    text = inspect.getdoc(function) or ""
    # The help of an argument may continue on the next line, indented further.
    found = re.findall(r"^ {4}(\w+): (.*(?:\n {8}.*)*)", text, re.MULTILINE)
    helps = {key: " ".join(sentence.split()) for key, sentence in found}
    options, positionals = [], []
    hints = dict(get_type_hints(function, include_extras=True))
    for key, kind in list(hints.items()):
        # The fields of a dataclass are flags, each with its own help.
        owner = getattr(kind, "__origin__", kind)
        if is_dataclass(owner) and isinstance(owner, type):
            hints |= get_type_hints(hints.pop(key).__origin__, include_extras=True)
            helps |= documented(owner)
    for key, kind in hints.items():
        if key not in helps:  # the return type, and settings that depend on the algorithm
            continue
        marks: tuple[Any, ...] = getattr(kind, "__metadata__", ())
        if tyro.conf.Positional in marks:
            positionals.append(Argument(key, helps[key], choices=_choices(name, key)))
            continue
        flag, flags = f"--{key.replace('_', '-')}", [kind, getattr(kind, "__origin__", kind)]
        options.append(Argument(flag, helps[key], bool not in flags, _choices(name, flag)))
        if bool in flags and tyro.conf.FlagCreatePairsOff not in marks:
            options.append(Argument(f"--no-{flag[2:]}", f"not: {helps[key]}", value=False))
    if name == "train":
        options += _settings()
    options.append(Argument("--help", "show this help", value=False))
    return Command(name, text.partition("\n")[0], tuple(options), tuple(positionals))


def _settings() -> list[Argument]:
    """Return the settings of all algorithms; none if JAX is not installed."""
    if find_spec("jax") is None:
        return []
    from sellf.cli.settings import choices, of_all_algorithms

    return [
        Argument(f"--{key.replace('_', '-')}", text, choices=choices(key))
        for key, text in of_all_algorithms().items()
    ]


def _choices(command: str, argument: str) -> tuple[str, ...]:
    if f"{command} {argument}" == "study name":
        builtin = Path(__file__).parent.parent / "studies" / "builtin"
        return tuple(sorted(file.stem for file in builtin.glob("*.toml")))
    found = CHOICES.get(f"{command} {argument}", ())
    # Names that installed packages register; listing them imports no package.
    kinds = {WORLDS: "worlds", ALGORITHMS: "algorithms", NOTIONS: "notions", TRAINED: "notions"}
    installed = entry_points(group=f"sellf.{kinds[found]}") if found in kinds else ()
    return (*found, *(point.name for point in installed if point.name not in found))


def _bash(commands: list[Command]) -> str:
    after = [
        f'    "{c.name} {o.name}") words="{" ".join(o.choices)}" ;;'
        for c in commands
        for o in c.options
        if o.value
    ]
    options = [
        f'        {c.name}) words="{" ".join(o.name for o in c.options)}" ;;' for c in commands
    ]
    positionals = [
        f'        "{c.name} {at}") words="{" ".join(argument.choices)}" ;;'
        for c in commands
        for at, argument in enumerate(c.positionals, 2)
        if argument.choices
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
            *positionals,
            "      esac; fi ;;",
            "  esac; fi",
            '  COMPREPLY=($(compgen -W "$words" -- "$current"))',
            "}",
            "# If nothing matches, complete file names.",
            "complete -o default -F _sellf sellf",
            "",
        ]
    )


def _zsh(commands: list[Command]) -> str:
    def text(sentence: str) -> str:
        return re.sub(r"([\[\]:\\])", r"\\\1", sentence)

    def option(argument: Argument) -> str:
        action = f"({' '.join(argument.choices)})" if argument.choices else "_files"
        follows = f":{argument.name[2:]}:{action}" if argument.value else ""
        return shlex.quote(f"*{argument.name}[{text(argument.help)}]{follows}")

    def word(at: int, argument: Argument) -> str:
        listed = f"({' '.join(argument.choices)})"
        if argument.name == "name":  # a study may be a file too
            listed = f"{{_alternative 'names\\:study\\:{listed}' 'files\\:file\\:_files'}}"
        return shlex.quote(f"{at}:{argument.name}:{listed if argument.choices else '_files'}")

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
        positionals = [word(at, argument) for at, argument in enumerate(command.positionals, 1)]
        specs = " \\\n      ".join([*map(option, command.options), *positionals])
        lines.append(f"    {command.name}) _arguments \\\n      {specs} ;;")
    lines += [
        "  esac",
        "}",
        "# Autoloaded from a folder of completions, call it; sourced, register it.",
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
        for argument in command.options:
            values = f" -x -a {quoted(' '.join(argument.choices))}" if argument.choices else " -r"
            follows = values if argument.value else ""
            lines.append(
                f"complete -c sellf -n '{chosen}' -l {argument.name[2:]}{follows} "
                f"-d {quoted(argument.help)}"
            )
        for at, argument in enumerate(command.positionals, 2):
            if argument.choices:
                here = f"{chosen}; and test (count (commandline -opc)) -eq {at}"
                files = "" if argument.name == "name" else " -f"  # a study may be a file too
                lines.append(
                    f"complete -c sellf -n '{here}'{files} -a {quoted(' '.join(argument.choices))}"
                )
    return "\n".join([*lines, ""])
