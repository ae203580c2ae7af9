"""The commands of `sellf`: one function per command, whose docstring is its help text."""

from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import tyro

from sellf import interrupts
from sellf.cli import repeated
from sellf.cli.arguments import Count, File, Flag, Folder, OwnNotion, Seed, Steps, Text
from sellf.cli.audit_flags import ColumnFlags, JudgeFlags, MeasureFlags, OutputFlags, ReadingFlags
from sellf.cli.whatif_flags import ImproveFlags, QuestionFlags, WhatIfFlags

DESCRIPTION = """Fair decisions over time when outcomes are only seen for the accepted.

`sellf COMMAND --help` shows the options of a command; `sellf --version` shows the version.
"""


def demo(
    log: Flag = False,
    people: Count = 20_000,
    steps: Count = 500_000,
    seed: Count = 0,
) -> None:
    """Show what a simulated lending log hides, then train three agents on lending.

    Args:
        log: show the log only, without training, which takes a second.
        people: the number of applicants in the log.
        steps: the number of decisions to train on.
        seed: the same seed gives the same log and the same agents.
    """
    from sellf.cli import demo as demos

    demos.show_log(people, seed)
    if not log:
        demos.train_and_compare(steps, seed)


def audit(
    log: Annotated[Text, tyro.conf.Positional, tyro.conf.arg(metavar="FILE")] = None,
    columns: Annotated[ColumnFlags, tyro.conf.OmitArgPrefixes] = ColumnFlags(),  # noqa: B008
    reading: Annotated[ReadingFlags, tyro.conf.OmitArgPrefixes] = ReadingFlags(),  # noqa: B008
    judge: Annotated[JudgeFlags, tyro.conf.OmitArgPrefixes] = JudgeFlags(),  # noqa: B008
    measures: Annotated[MeasureFlags, tyro.conf.OmitArgPrefixes] = MeasureFlags(),  # noqa: B008
    output: Annotated[OutputFlags, tyro.conf.OmitArgPrefixes] = OutputFlags(),  # noqa: B008
) -> None:
    """Audit the fairness of a decision log that shows outcomes of the accepted only.

    Args:
        log: a CSV or Parquet file; several as 'logs/*.parquet'.
        columns: the columns of the log.
        reading: how the log is read.
        judge: the notion, the tolerance and how intervals are computed.
        measures: measures in addition to the disparity.
        output: the files and formats to write.
    """
    from sellf.cli.audit import run

    run(log, columns, reading, judge, measures, output)


def whatif(
    log: Annotated[Text, tyro.conf.Positional, tyro.conf.arg(metavar="FILE")] = None,
    columns: Annotated[ColumnFlags, tyro.conf.OmitArgPrefixes] = ColumnFlags(),  # noqa: B008
    reading: Annotated[ReadingFlags, tyro.conf.OmitArgPrefixes] = ReadingFlags(),  # noqa: B008
    question: Annotated[QuestionFlags, tyro.conf.OmitArgPrefixes] = QuestionFlags(),  # noqa: B008
    asked: Annotated[WhatIfFlags, tyro.conf.OmitArgPrefixes] = WhatIfFlags(),  # noqa: B008
    json: Flag = False,
    plot: File = None,
) -> None:
    """Estimate what another policy, or every cut-off of a score, would have done.

    Args:
        log: a CSV or Parquet file; several as 'logs/*.parquet'.
        columns: the columns of the log.
        reading: how the log is read.
        question: the tolerance, how intervals are computed, and the report.
        asked: the policies to evaluate.
        json: print every figure as JSON.
        plot: plot the result to this file (.png, .svg or .pdf).
    """
    from sellf.cli import whatif as command

    command.whatif(log, columns, reading, question, asked, json, plot)


def improve(
    log: Annotated[Text, tyro.conf.Positional, tyro.conf.arg(metavar="FILE")] = None,
    columns: Annotated[ColumnFlags, tyro.conf.OmitArgPrefixes] = ColumnFlags(),  # noqa: B008
    reading: Annotated[ReadingFlags, tyro.conf.OmitArgPrefixes] = ReadingFlags(),  # noqa: B008
    question: Annotated[QuestionFlags, tyro.conf.OmitArgPrefixes] = QuestionFlags(),  # noqa: B008
    asked: Annotated[ImproveFlags, tyro.conf.OmitArgPrefixes] = ImproveFlags(),  # noqa: B008
    json: Flag = False,
) -> None:
    """Find a policy certified to be within a tolerance and to earn what the current one earns.

    Args:
        log: a CSV or Parquet file; several as 'logs/*.parquet'.
        columns: the columns of the log; --feature names the inputs of the policy.
        reading: how the log is read.
        question: the tolerance, how intervals are computed, and the report.
        asked: the policy to learn, and what it has to achieve.
        json: print every figure as JSON.
    """
    from sellf.cli import whatif as command

    command.improve(log, columns, reading, question, asked, json)


def datasets(
    name: Annotated[Text, tyro.conf.Positional, tyro.conf.arg(metavar="NAME")] = None,
    year: Count = 2014,
    address: Text = None,
) -> None:
    """List public logs of decisions, or fetch one and print the command that audits it.

    Args:
        name: compas, nypd-stops, amex or adult.
        year: (nypd-stops) from 2003 to 2016.
        address: the address of a copy, if the published one cannot be reached.
    """
    from sellf.cli.datasets import act

    act(name, year, address)


def worlds(
    world: Annotated[Text, tyro.conf.Positional, tyro.conf.arg(metavar="WORLD")] = None,
) -> None:
    """List the worlds: their groups, inputs, cost, dynamics and where the figures come from.

    Args:
        world: show this one only, with all its inputs and its full provenance.
    """
    from sellf.cli.worlds import print_worlds

    print_worlds(world)


def algorithms(
    algorithm: Annotated[Text, tyro.conf.Positional, tyro.conf.arg(metavar="ALGORITHM")] = None,
) -> None:
    """List the algorithms: what each does, which labels it sees, and which package provides it.

    Args:
        algorithm: show this one only, with all its settings.
    """
    from sellf.cli.algorithms import print_algorithms

    print_algorithms(algorithm)


def train(
    world: Annotated[Text, tyro.conf.Positional, tyro.conf.arg(metavar="WORLD")] = None,
    algorithm: Annotated[
        str, tyro.conf.Positional, tyro.conf.arg(metavar="ALGORITHM")
    ] = "sellf-direct",
    notion: OwnNotion = None,
    steps: Steps = None,
    seed: Seed = None,
    out: Folder = None,
    resume: Folder = None,
    continue_from: Folder = None,
    quiet: Flag = False,
    log: Annotated[
        tyro.conf.UseAppendAction[tuple[str, ...]],
        tyro.conf.arg(metavar="TRACKER", help_behavior_hint="(repeatable)"),
    ] = (),
    set: Annotated[
        tuple[str, ...], tyro.conf.arg(metavar="NAME=VALUE", help_behavior_hint="")
    ] = (),
    **settings: Any,
) -> None:
    """Train an agent.

    Args:
        world: lending, lending-amounts, recidivism, school, school-continuous, attention,
            admission, or another of `sellf worlds`; your own function as package.module:name.
        algorithm: sellf-direct or sellf-plan (give --omega), sellf (the paper's), sellf-semi,
            sellf-relu, ppo, pocar, pocar-oracle, elbert, focops, ppo-lagrangian, pid-lagrangian,
            cup, or another of `sellf algorithms`; followed by --help, its settings are shown.
        notion: opportunity, accuracy, qualification, predictive-parity, false-positive-rate
            or equalized-odds.
        steps: the number of decisions to learn from.
        seed: the same seed gives the same agent.
        out: a folder for configuration, metrics, checkpoints and the agent (default: runs/...).
        resume: resume the run in this folder; needs no other argument.
        continue_from: start from the agent in this folder, in a world that may have changed.
        quiet: show no progress.
        log: tensorboard, wandb or mlflow: also log metrics there; repeat for more.
        set: settings of the world or the algorithm, e.g. --set population=1000 groups=all.
        **settings: settings of the algorithm, one flag each.
    """
    from sellf.cli import train as command

    given = {name: value for name, value in settings.items() if value is not None}
    if resume is not None:
        other = {
            "WORLD": world, "--notion": notion, "--steps": steps, "--seed": seed, "--out": out,
            "--continue-from": continue_from, "--set": set,
        }  # fmt: skip
        other |= {f"--{name.replace('_', '-')}": value for name, value in given.items()}
        command.check_alone([name for name, value in other.items() if value not in (None, ())])
        command.resume(resume, not quiet, log)
    else:
        command.train(
            world, algorithm, notion, steps, seed, out, list(set), given, not quiet, log,
            continue_from,
        )  # fmt: skip


def evaluate(
    run: Annotated[Path, tyro.conf.Positional],
    deployments: Count = 10,
    seed: Count = 0,
    json: Flag = False,
    plot: File = None,
) -> None:
    """Deploy a trained agent to new populations.

    Args:
        run: the folder of a run or an agent.
        deployments: the number of new populations.
        seed: the seed of the deployments.
        json: print one JSON object instead of a table.
        plot: plot reward and disparity over time to this file (.png, .svg or .pdf).
    """
    from sellf.cli import train as command

    command.evaluate(run, deployments, seed, json, plot)


def frontier(
    world: Annotated[Text, tyro.conf.Positional, tyro.conf.arg(metavar="WORLD")] = None,
    notion: str = "opportunity",
    omega: Annotated[tuple[float, ...], tyro.conf.arg(metavar="OMEGA", help_behavior_hint="")] = (),
    segments: Count = 1,
    starts: Count = 6,
    seed: Count = 0,
    json: Flag = False,
    plot: File = None,
) -> None:
    """Show the largest reward that any policy can earn in a world, by tolerated disparity.

    Args:
        world: lending, recidivism, school, school-continuous, lending-amounts or attention.
        notion: qualification, accuracy, opportunity, demographic, predictive-parity,
            false-positive-rate or equalized-odds.
        omega: the tolerated disparities, e.g. --omega 0.02 0.05 0.1 (default: several values).
        segments: the number of time segments, each with its own policy.
        starts: the number of random policies from which to search for each omega.
        seed: the seed of these policies.
        json: print one JSON object instead of a table.
        plot: plot the frontier to this file (.png, .svg or .pdf).
    """
    from sellf.cli.frontier import run

    run(world, notion, omega, segments, starts, seed, json, plot)


def study(
    action: Annotated[str, tyro.conf.Positional],
    name: Annotated[Text, tyro.conf.Positional, tyro.conf.arg(metavar="NAME")] = None,
    engine: str = "local",
    address: Text = None,
    workers: Annotated[int | None, tyro.conf.arg(metavar="N", help_behavior_hint="")] = None,
    store: Folder = None,
    quick: Flag = False,
    check: Flag = False,
    out: Folder = None,
) -> None:
    """Run a study, the paper's or your own; finished runs are stored and never repeated.

    Args:
        action: list, run, status, frontier (the best reward of any policy, stored for tables
            and figures), table, figures, export, or merge.
        name: a study that `sellf study list` shows, a TOML file, or (merge) another store or
            a file that `export` wrote.
        engine: local or ray.
        address: the address of a Ray cluster, or auto; if omitted, a cluster is started.
        workers: the number of parallel runs (default: one per core; 0: in this process).
        store: the folder of runs (default: $SELLF_STORE, else sellf-store).
        quick: run a reduced version, for a first look in minutes.
        check: (status) read every run and compare its checksums.
        out: (table, figures) the folder to write into (default: results/NAME); (export) the file
            (default: NAME.tar.xz).
    """
    options = dict(locals())
    from sellf.cli.study import act

    code = act(options.pop("action"), options.pop("name"), **options)
    if code:
        raise SystemExit(code)


def report(
    paths: Annotated[tuple[Path, ...], tyro.conf.Positional, tyro.conf.arg(metavar="PATH")] = (),
    out: Annotated[Path, tyro.conf.arg(aliases=["-o"], metavar="FILE")] = Path("report.html"),
    quick: Flag = False,
    store: Folder = None,
) -> None:
    """Write a report: one self-contained HTML file that works offline.

    Args:
        paths: a file with the JSON of an audit; the folders of runs to compare; a study, by its
            name or TOML file; or several files, optionally with folders, for an index.
        out: the file to write.
        quick: (study) report its reduced version.
        store: (study) the folder of runs (default: $SELLF_STORE, else sellf-store).
    """
    from sellf.cli.report import write

    write(list(paths), out, quick=quick, store=store)


def doctor(json: Flag = False) -> None:
    """Show versions, devices, caches, and what each optional part enables; exits 1 if broken.

    Args:
        json: print all of it as JSON.
    """
    from sellf.cli.doctor import act

    code = act(json)
    if code:
        raise SystemExit(code)


def completion(shell: Annotated[str, tyro.conf.Positional]) -> None:
    """Print a script with which your shell completes the commands and options of `sellf`.

    bash: add `source <(sellf completion bash)` to ~/.bashrc.
    zsh: add `source <(sellf completion zsh)` to ~/.zshrc, after compinit.
    fish: type `sellf completion fish > ~/.config/fish/completions/sellf.fish`.

    Args:
        shell: bash, zsh or fish.
    """
    from sellf.cli.completion import script

    print(script(shell, COMMANDS), end="")


COMMANDS: dict[str, Callable[..., None]] = {
    "algorithms": algorithms,
    "audit": audit,
    "completion": completion,
    "datasets": datasets,
    "demo": demo,
    "doctor": doctor,
    "evaluate": evaluate,
    "frontier": frontier,
    "whatif": whatif,
    "improve": improve,
    "report": report,
    "study": study,
    "train": train,
    "worlds": worlds,
}


SLOW = {
    "algorithms": "sellf.cli.algorithms",
    "evaluate": "sellf.cli.train",
    "frontier": "sellf.cli.frontier",
    "train": "sellf.cli.train",
    "worlds": "sellf.cli.worlds",
}
"""Commands that import JAX, and the modules that do so."""


def commands_for(arguments: Sequence[str]) -> dict[str, Callable[..., None]]:
    """Return the commands; `train` takes the settings of the algorithm that the arguments name."""
    if not arguments or arguments[0] != "train":
        return COMMANDS
    # Only here: the settings are defined in the algorithm's module, which imports JAX.
    with interrupts.nothing_to_lose():
        from sellf.cli.settings import with_settings
    return COMMANDS | {"train": with_settings(train, arguments[1:])}


def run(arguments: Sequence[str]) -> None:
    """Parse the arguments and run the command; exit with code 2 if they are invalid."""
    command = arguments[0] if arguments else ""
    if command in SLOW and not {"-h", "--help"} & set(arguments):
        with interrupts.nothing_to_lose():
            import_module(SLOW[command])
    known = commands_for(arguments)
    if command in known:
        repeated.check(known[command], arguments[1:])
    tyro.extras.subcommand_cli_from_dict(
        known,
        prog="sellf",
        description=DESCRIPTION,
        args=arguments,
    )
