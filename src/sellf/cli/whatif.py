"""`sellf whatif` and `sellf improve`: from a log to another policy."""

import json
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Annotated, Any

import tyro

from sellf import files
from sellf.cli.audit_flags import ColumnFlags, ReadingFlags
from sellf.cli.kinds import Column, File, Flag, Folder, Text
from sellf.cli.progress import bar
from sellf.errors import InputError
from sellf.logs.files import named_files
from sellf.text import plain, plain_json

PICTURES = (".png", ".svg", ".pdf")
Share = Annotated[float | None, tyro.conf.arg(metavar="SHARE", help_behavior_hint="")]
Names = Annotated[
    tyro.conf.UseAppendAction[tuple[str, ...]],
    tyro.conf.arg(metavar="NAME", help_behavior_hint="(repeatable)"),
]


@dataclass(frozen=True)
class QuestionFlags:
    """What is asked of the log."""

    omega: float = 0.05
    """the disparity that is tolerated."""
    delta: float = 0.05
    """the chance with which each interval may miss."""
    overlap: Share = None
    """below this propensity the accepted tell nothing of the rejected."""
    model: str = "boosting"
    """boosting or logistic, for propensities that are not known."""
    matures_after: Annotated[Text, tyro.conf.arg(metavar="365d")] = None
    """how long an outcome takes to be known, in d, w, mo or y; later decisions do not count."""
    as_of: Annotated[Text, tyro.conf.arg(metavar="DATE")] = None
    """the day on which outcomes were looked up (default: that of the last decision)."""
    seed: Annotated[int | None, tyro.conf.arg(metavar="N", help_behavior_hint="")] = None
    """of what is drawn at random; the same seed repeats the answer."""


@dataclass(frozen=True)
class WhatIfFlags:
    """Which policies are asked about."""

    policy: Column = None
    """the column with the chance that the new policy accepts each person; 0 or 1 for a rule."""
    cutoffs: Column = None
    """the column, on any scale, of which every cut-off is tried."""
    per_group: Flag = False
    """(cutoffs) try a cut-off for each group as well."""
    cost: Share = None
    """what accepting costs, as a share of what a good outcome pays; needed for --cutoffs."""
    notion: Names = ()
    """a measure of fairness to compare (default: all that decisions change; of cut-offs,
    opportunity)."""


@dataclass(frozen=True)
class ImproveFlags:
    """What is asked of a better policy."""

    cost: Share = None
    """what accepting costs, as a share of what a good outcome pays."""
    notion: str = "opportunity"
    """the measure of fairness."""
    kind: str = "logistic"
    """logistic, scorecard or boosting."""
    use_group: Flag = False
    """let the policy see the group; else the group serves to measure only."""
    explore: float = 0.0
    """the smallest chance of acceptance, so that the next log can be learned from."""
    reward_at_least: float = 1.0
    """the share of the current policy's reward that must be kept."""
    out: Annotated[Folder, tyro.conf.arg(aliases=["-o"])] = None
    """a new folder for the policy."""


def _reading(columns: ColumnFlags, reading: ReadingFlags, question: QuestionFlags) -> dict[str, Any]:
    options = {**vars(columns), **vars(reading), **vars(question)}
    options |= {"group": list(columns.group), "features": list(options.pop("feature"))}
    for name in ("group", "decision"):
        if not options[name]:
            raise InputError(f"{name} is missing: type --{name} and the name of its column.")
    return {name: options[name] for name in options if name not in ("omega", "delta")}


def whatif(
    log: str | None,
    columns: ColumnFlags,
    reading: ReadingFlags,
    question: QuestionFlags,
    asked: WhatIfFlags,
    as_json: bool,
    plot: File,
) -> None:
    """Ask, print, draw."""
    from sellf.offline.cutoffs import cutoffs
    from sellf.offline.whatif import whatif as compare

    if log is None or (asked.policy is None) == (asked.cutoffs is None):
        raise InputError(
            "name a log and a policy: type for example `sellf whatif loans.csv --group race "
            "--decision approved --outcome repaid --propensity p --policy p_new`, or --cutoffs "
            "COLUMN in place of --policy."
        )
    _check_plot(plot, log)
    options = _reading(columns, reading, question)
    limits = {"omega": question.omega, "delta": question.delta}
    result: Any
    if asked.policy is not None:
        notions = list(asked.notion) or None
        result = compare(
            log, policy=asked.policy, cost=asked.cost, notions=notions, **limits, **options
        )
    else:
        if asked.cost is None:
            raise InputError("cost is missing: type --cost and what accepting costs, as --cost 0.8.")
        notion = asked.notion[0] if asked.notion else "opportunity"
        with bar(f"cut-offs of {asked.cutoffs}") as progress:
            result = cutoffs(
                log,
                by=str(asked.cutoffs),
                cost=asked.cost,
                notion=notion,
                per_group=asked.per_group,
                progress=progress,
                **limits,
                **options,
            )
    print(plain_json(result.to_json()) if as_json else plain(result))
    _draw(result, plot)


def improve(
    log: str | None,
    columns: ColumnFlags,
    reading: ReadingFlags,
    question: QuestionFlags,
    asked: ImproveFlags,
    as_json: bool,
) -> None:
    """Learn, certify, print, save."""
    from sellf.offline.improve import improve as learn

    if log is None or asked.cost is None or not columns.feature:
        raise InputError(
            "name a log, features and a cost: type for example `sellf improve loans.csv --group "
            "race --decision approved --outcome repaid --propensity p --feature income --cost 0.8 "
            "-o policy`."
        )
    if asked.out is not None and asked.out.exists():
        raise InputError(f"--out {asked.out} exists: choose another name, or remove it first.")
    options = _reading(columns, reading, question)
    features = options.pop("features")
    with bar("learning a policy") as progress:
        found = learn(
            log,
            features=features,
            cost=asked.cost,
            omega=question.omega,
            delta=question.delta,
            notion=asked.notion,
            kind=asked.kind,  # pyright: ignore[reportArgumentType]  # improve checks it
            use_group=asked.use_group,
            explore=asked.explore,
            reward_at_least=asked.reward_at_least,
            progress=progress,
            **options,
        )
    if asked.out is not None and found.policy is not None:
        found.save(asked.out)
    if as_json:
        print(plain_json(json.dumps(found.to_dict(), indent=2, ensure_ascii=False)))
    else:
        print(plain(found))
        if asked.out is not None and found.policy is not None:
            print(f"\nthe policy is in {asked.out}: card.md tells of it, sellf.load_policy reads it.")


def _check_plot(plot: Path | None, log: str) -> None:
    if plot is None:
        return
    if plot.suffix not in PICTURES:
        raise InputError(f"--plot {plot}: give a name that ends in {', '.join(PICTURES)}.")
    files.check_output(plot, named_files(log), "--plot")


def _draw(result: Any, plot: Path | None) -> None:
    if plot is not None:
        picture = BytesIO()
        result.plot().savefig(picture, dpi=150, format=plot.suffix[1:])
        files.write(plot, picture.getvalue())
