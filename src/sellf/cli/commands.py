"""What can be typed after `sellf`: one function a command, its docstring the help text."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import tyro

DESCRIPTION = """Fair decisions over time when outcomes are only seen for the accepted.

`sellf COMMAND --help` says more; `sellf --version` says which version this is.
"""


def demo(
    log: bool = False,
    people: Annotated[int, tyro.conf.arg(metavar="N")] = 20_000,
    steps: Annotated[int, tyro.conf.arg(metavar="N")] = 500_000,
    seed: Annotated[int, tyro.conf.arg(metavar="N")] = 0,
) -> None:
    """Show what a simulated lending log hides, then train three agents on lending.

    Args:
        log: only the log: it needs no training and takes a second.
        people: how many applicants the log has.
        steps: how many decisions to train on.
        seed: the same seed gives the same log and the same agents.
    """
    from sellf.cli import demo as demos

    demos.show_log(people, seed)
    if not log:
        demos.train_and_compare(steps, seed)


def audit(
    log: Annotated[str | None, tyro.conf.Positional, tyro.conf.arg(metavar="FILE")] = None,
    group: tyro.conf.UseAppendAction[tuple[str, ...]] = (),
    decision: str | None = None,
    outcome: str | None = None,
    propensity: str | None = None,
    score: str | None = None,
    feature: tyro.conf.UseAppendAction[tuple[str, ...]] = (),
    notion: str = "opportunity",
    omega: float = 0.05,
    delta: float = 0.05,
    overlap: float | None = None,
    model: str = "boosting",
    time: str | None = None,
    by: str | None = None,
    anytime: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False,
    accepted_value: str | None = None,
    positive_value: str | None = None,
    score_is_risk: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False,
    trust_rejected_outcomes: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False,
    person: str | None = None,
    decided_on: str | None = None,
    matures_after: Annotated[str | None, tyro.conf.arg(metavar="365d")] = None,
    as_of: Annotated[str | None, tyro.conf.arg(metavar="DATE")] = None,
    seed: Annotated[int | None, tyro.conf.arg(metavar="N")] = None,
    drop_missing: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False,
    example: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False,
    json: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False,
    html: Path | None = None,
    save: Path | None = None,
) -> None:
    """Say whether a decision log is fair, though it shows outcomes of the accepted only.

    Args:
        log: a CSV or Parquet file; several as 'logs/*.parquet'.
        group: the column that names each person's group; again for a second column.
        decision: the column of decisions, 1 for accepted and 0 for rejected.
        outcome: the column of outcomes, 1 for good and 0 for bad, empty for the rejected.
        propensity: the column with the chance that each decision was to accept.
        score: the column with predictions, the chance of a good outcome, fitted on other people.
        feature: a column to estimate propensities from where they are not known; again for more.
        notion: qualification, accuracy, opportunity, demographic, or all.
        omega: the disparity that is tolerated.
        delta: the chance with which the interval may miss.
        overlap: below this propensity the accepted tell nothing of the rejected.
        model: boosting or logistic, for propensities that are not known.
        time: the column that dates each decision.
        by: day, week, month, quarter or year, to audit each on its own as well.
        anytime: intervals that hold however often one looks while the log grows.
        accepted_value: the decision that means accepted, if that is not 1.
        positive_value: the outcome that is good, if that is not 1.
        score_is_risk: the score is the chance of a bad outcome.
        trust_rejected_outcomes: use the outcomes that the log holds for the rejected.
        person: the column that names the person behind each row, for people with several rows.
        decided_on: the column with the date of each decision.
        matures_after: how long an outcome takes to be known, in d, w, mo or y; later decisions do
            not count, except for demographic.
        as_of: the day on which outcomes were looked up (default: that of the last decision).
        seed: of the random order in which rows are used; the one in a report repeats its audit.
        drop_missing: no longer available; says what to type instead.
        example: audit a simulated lending log whose truth is known.
        json: print every figure as JSON.
        html: write a report to send into this file: one page that works offline.
        save: (example) keep its log in this CSV file, to try things with.
    """
    from sellf.cli.audit import run

    options = {
        "group": list(group),
        "decision": decision,
        "outcome": outcome,
        "propensity": propensity,
        "score": score,
        "features": feature,
        "notion": notion,
        "omega": omega,
        "delta": delta,
        "overlap": overlap,
        "model": model,
        "time": time,
        "by": by,
        "anytime": anytime,
        "accepted_value": accepted_value,
        "positive_value": positive_value,
        "score_is_risk": score_is_risk,
        "trust_rejected_outcomes": trust_rejected_outcomes,
        "person": person,
        "decided_on": decided_on,
        "matures_after": matures_after,
        "as_of": as_of,
        "seed": seed,
        "drop_missing": drop_missing,
    }
    run(log, options, example=example, json=json, html=html, save=save)


def worlds(world: Annotated[str | None, tyro.conf.Positional] = None) -> None:
    """List the worlds: their groups, inputs, cost, dynamics and where the figures come from.

    Args:
        world: show this one only, with all its inputs and the whole provenance.
    """
    from sellf.cli.worlds import print_worlds

    print_worlds(world)


def train(
    world: Annotated[str | None, tyro.conf.Positional] = None,
    algorithm: Annotated[str, tyro.conf.Positional] = "sellf-direct",
    notion: str = "opportunity",
    steps: int = 500_000,
    seed: int = 0,
    out: Path | None = None,
    resume: Path | None = None,
    quiet: bool = False,
    log: tyro.conf.UseAppendAction[tuple[str, ...]] = (),
    set: Annotated[tuple[str, ...], tyro.conf.arg(metavar="NAME=VALUE")] = (),
    beta_disparity: float | None = None,
    beta_renyi: float | None = None,
    omega: float | None = None,
) -> None:
    """Train an agent.

    Args:
        world: lending, recidivism, school or school-continuous.
        algorithm: sellf-direct (give --omega), sellf (the paper's), sellf-semi,
            sellf-relu, ppo, pocar, pocar-oracle, elbert or focops.
        notion: opportunity, accuracy or qualification.
        steps: how many decisions to learn from.
        seed: the same seed gives the same agent.
        out: a folder for configuration, metrics, checkpoints and the agent (default: runs/...).
        resume: go on with the run in this folder; needs nothing else.
        quiet: show no progress.
        log: tensorboard, wandb or mlflow, to log there too; again for more.
        set: any setting of the algorithm or the world, e.g. --set learning_rate=1e-4 groups=all.
        beta_disparity: weight of the disparity penalty (pocar, sellf).
        beta_renyi: weight of the Renyi term (sellf).
        omega: the disparity that is tolerated.
    """
    from sellf.cli import train as command

    named = {"beta_disparity": beta_disparity, "beta_renyi": beta_renyi, "omega": omega}
    given = {name: value for name, value in named.items() if value is not None}
    if resume is not None:
        command.resume(resume, not quiet, log)
    else:
        command.train(world, algorithm, notion, steps, seed, out, list(set), given, not quiet, log)


def evaluate(
    run: Annotated[Path, tyro.conf.Positional],
    deployments: int = 10,
    seed: int = 0,
    json: bool = False,
    plot: Path | None = None,
) -> None:
    """Deploy a trained agent to new populations.

    Args:
        run: the folder of a run or an agent.
        deployments: to how many.
        seed: of the deployments.
        json: print one JSON object instead of a table.
        plot: draw reward and disparity over time into this file (.png, .svg or .pdf).
    """
    from sellf.cli import train as command

    command.evaluate(run, deployments, seed, json, plot)


def study(
    action: Annotated[str, tyro.conf.Positional],
    name: Annotated[str | None, tyro.conf.Positional] = None,
    engine: str = "local",
    address: str | None = None,
    workers: Annotated[int | None, tyro.conf.arg(metavar="N")] = None,
    store: Path | None = None,
    quick: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False,
    check: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False,
    out: Path | None = None,
) -> None:
    """Run a study: the paper's, or your own; what is done is kept, and never done twice.

    Args:
        action: list, run, status, table, figures, or merge.
        name: a study that `sellf study list` shows, a TOML file, or (merge) another store.
        engine: local or ray.
        address: of a Ray cluster, or auto; without, one is started for the purpose.
        workers: how many runs at a time (default: one per core; 0: in this process).
        store: the folder of runs (default: $SELLF_STORE, else sellf-store).
        quick: everything smaller, for a first look in minutes.
        check: (status) read every run and compare its checksums.
        out: (table, figures) the folder to write into (default: results/NAME).
    """
    from sellf.cli.study import act

    code = act(
        action,
        name,
        engine=engine,
        address=address,
        workers=workers,
        store=store,
        quick=quick,
        check=check,
        out=out,
    )
    if code:
        raise SystemExit(code)


def report(
    paths: Annotated[tuple[Path, ...], tyro.conf.Positional, tyro.conf.arg(metavar="PATH")] = (),
    out: Annotated[Path, tyro.conf.arg(aliases=["-o"], metavar="FILE")] = Path("report.html"),
    quick: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False,
    store: Path | None = None,
) -> None:
    """Write a report to send: one HTML file that works offline.

    Args:
        paths: the JSON that an audit printed, in a file; the folders of runs to compare; or a
            study, by its name or TOML file.
        out: the file to write.
        quick: (study) its small version.
        store: (study) the folder of runs (default: $SELLF_STORE, else sellf-store).
    """
    from sellf.cli.report import write

    write(list(paths), out, quick=quick, store=store)


def doctor(json: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False) -> None:
    """Show versions, devices, caches, and what each optional part enables; exits 1 if broken.

    Args:
        json: print all of it as JSON.
    """
    from sellf.cli.doctor import act

    code = act(json)
    if code:
        raise SystemExit(code)


def completion(shell: Annotated[str, tyro.conf.Positional]) -> None:
    """Print a script that makes your shell complete what follows `sellf`.

    bash: add `source <(sellf completion bash)` to ~/.bashrc.
    zsh: add `source <(sellf completion zsh)` to ~/.zshrc, after compinit.
    fish: type `sellf completion fish > ~/.config/fish/completions/sellf.fish`.

    Args:
        shell: bash, zsh or fish.
    """
    from sellf.cli.completion import script

    print(script(shell, COMMANDS), end="")


COMMANDS = {
    "audit": audit,
    "completion": completion,
    "demo": demo,
    "doctor": doctor,
    "evaluate": evaluate,
    "report": report,
    "study": study,
    "train": train,
    "worlds": worlds,
}


def run(arguments: Sequence[str]) -> None:
    """Parse the arguments and run the command; exits with 2 if they make no sense."""
    tyro.extras.subcommand_cli_from_dict(
        COMMANDS,
        prog="sellf",
        description=DESCRIPTION,
        args=arguments,
    )
