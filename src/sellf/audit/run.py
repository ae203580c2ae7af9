"""The functions `audit` and `audit_all`: from a decision log to a verdict."""

import secrets
from collections.abc import Iterable
from dataclasses import replace
from datetime import date
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sellf.audit.assumptions import all_hold_together
from sellf.audit.result import Audit, Audits, Origin
from sellf.errors import InputError
from sellf.fairness.checks import chance_of_error, number, one_of
from sellf.fairness.notions import TABLE, Notion, define
from sellf.logs.columns import Columns
from sellf.logs.config import OF_COLUMNS, OF_READING, LogConfig
from sellf.logs.limits import DEFAULT, Limits

if TYPE_CHECKING:
    from sellf.audit.aipw import Model
    from sellf.audit.measures import Wanted
    from sellf.logs.log import Log


def audit(
    log: Any,
    *,
    group: str | list[str] | tuple[str, ...] = (),
    decision: str,
    outcome: str | None = None,
    propensity: str | None = None,
    score: str | None = None,
    features: str | list[str] | tuple[str, ...] = (),
    notion: Notion = "opportunity",
    omega: float = 0.05,
    delta: float = 0.05,
    overlap: float | None = None,
    model: "Model" = "boosting",
    time: str | None = None,
    by: str | None = None,
    anytime: bool = False,
    accepted_value: Any = None,
    positive_value: Any = None,
    score_is_risk: bool = False,
    trust_rejected_outcomes: bool = False,
    person: str | None = None,
    decided_on: str | None = None,
    matures_after: str | None = None,
    as_of: str | date | None = None,
    seed: int | None = None,
    panel: bool = False,
    reference: str | None = None,
    unknown_group: str | list[str] | tuple[str, ...] = (),
    ladder: bool = False,
    examiner: str | None = None,
    within: str | list[str] | tuple[str, ...] = (),
    group_probability: str | None = None,
    weight: str | None = None,
    joint: bool = False,
    drop_missing: bool = False,
    limits: Limits | None = None,
    **reading: Any,
) -> Audit:
    """Audit a decision log for fairness when outcomes are seen for accepted people only.

    Args:
        log: a path to a CSV, Parquet, Excel, SQLite or DuckDB file; several files as
            "logs/*.parquet" or as a list of paths; the address of a PostgreSQL or MySQL server; a
            frame (pandas, Polars, PyArrow, DuckDB, Spark); or a mapping of columns.
        group: the column that names each person's group, or several such columns.
        decision: the column of decisions, 1 for accepted and 0 for rejected; for other values see
            `accepted_value`. Here and for `outcome`, "a | b" is positive where a or b is.
        outcome: the column of outcomes, 1 for good and 0 for bad, empty for the rejected. An
            outcome that is missing for an accepted person may be either.
        propensity: the column with the probability that each decision was to accept.
        score: the column with the predicted probability of a good outcome, from a model fitted on
            other people.
        features: columns from which propensities are estimated when they are not known.
        notion: "qualification" (E[Y]), "accuracy" (P(Y = A)), "opportunity" (P(A = 1 | Y = 1)),
            "demographic" (P(A = 1)), "predictive-parity" (P(Y = 1 | A = 1)),
            "false-positive-rate" (P(A = 1 | Y = 0)) or "equalized-odds" (the larger of the
            disparities in opportunity and in the false-positive rate).
        omega: the tolerated disparity.
        delta: one minus the confidence level: 0.05 for 95% confidence.
        overlap: the smallest propensity used for weighting; below it, the accepted say nothing
            about the rejected.
        model: "boosting" or "logistic", the model of propensities that are not known.
        time: the column with the time of each decision.
        by: "day", "week", "month", "quarter" or "year": audit each period separately as well.
        anytime: compute intervals that stay valid however often a growing log is audited; rows
            count in the order of `time`, or in the order of the log without it.
        accepted_value: the value of `decision` that means accepted, or several values.
        positive_value: the value of `outcome` that means good, or several values.
        score_is_risk: whether the score is the probability of a bad outcome.
        trust_rejected_outcomes: whether to use the outcomes that the log holds for the rejected.
        person: the column that identifies the person behind each row, for people with several rows.
        decided_on: the column with the date of each decision.
        matures_after: how long an outcome takes to be known: "365d", "52w", "12mo" or "1y". Later
            decisions do not count, except for "demographic", which needs no outcome.
        as_of: the day on which outcomes were looked up; None: the day of the last decision.
        seed: seed of the random order in which rows are used; None draws a new one. The same seed
            repeats the audit exactly, and `origin.seed` holds the one that was used.
        panel: add further measures: differences, ratios with the four-fifths threshold, odds
            ratios, scores, calibration and New York's table, each with an interval.
        reference: the group that all others are compared with, in the panel and within strata.
        unknown_group: groups of people whose category is not known.
        ladder: add the disparity under weaker and stronger beliefs about the rejected.
        examiner: (ladder) the column that names the decision maker; assumes that the cases of each
            group were assigned to examiners as if at random.
        within: columns that define strata within which groups are compared; numeric columns with
            many values are cut into five bands.
        group_probability: instead of `group`, the column with the probability that each person
            belongs to a group that is not recorded.
        weight: the column with the number of people that each row represents.
        joint: (audit_all) all notions hold together with probability 1 - delta, not one by one.
        drop_missing: no longer available; raises an error that says what to do instead.
        limits: numbers of rows up to which logs are loaded into memory and processed row by row.
        reading: options that say how the log is read and which rows are used, as on the command
            line: where, groups, other, missing_value, hide_rejected_outcomes, rejected_value,
            negative_value, score_range, date_format, bands, encoding, separator, quote, decimal,
            sheet, table, query.
    """
    options = {name: value for name, value in locals().items() if name not in ("notion", "reading")}
    _check_reading(reading)
    define(notion)
    return _audits([notion], **options, **reading)[notion]


def audit_all(log: Any, *, notions: Iterable[Notion] | None = None, **options: Any) -> Audits:
    """Audit several notions at once, with the options of `audit` except `notion`.

    Each notion's interval holds with probability 1 - delta on its own; with `joint`, all of them
    hold together with that probability.

    Args:
        log: as for `audit`.
        notions: the notions to audit; None: all, or those that need no outcome if `outcome` is not
            given.
        options: as for `audit`.
    """
    if "notion" in options:
        raise InputError("audit_all audits every notion: leave notion out, or call audit.")
    defaults = {
        name: value for name, value in (audit.__kwdefaults__ or {}).items() if name != "notion"
    }
    own = {*(audit.__kwdefaults__ or {}), "group", "decision"}
    _check_reading({name: value for name, value in options.items() if name not in own})
    grouped = () if options.get("group_probability") else ("group",)
    for name in (*grouped, "decision"):
        if name not in options:
            raise InputError(f"{name} is missing: name the column of the log that holds it.")
    labelled = options.get("outcome") is not None
    if notions is None:
        notions = (name for name in TABLE if labelled or not define(name).needs_label)
    wanted = list(dict.fromkeys(define(name).name for name in notions))
    if not wanted:
        raise InputError("notions is empty: name some, or leave it out for all.")
    found = _audits(wanted, log=log, **{**defaults, **options})
    if options.get("joint"):
        sure = 1 - options.get("delta", defaults["delta"])
        line = all_hold_together(len(wanted), sure)
        found = {
            name: replace(one, assumptions=(*one.assumptions, line)) for name, one in found.items()
        }
    return Audits(found)


def _audits(notions: list[Notion], *, log: Any, **options: Any) -> dict[Notion, Audit]:
    # Imported here to keep `import sellf` fast.
    from sellf.audit.maturity import read_maturity, set_aside
    from sellf.audit.origin import trace
    from sellf.logs.reading import open_log

    if options.pop("drop_missing"):
        raise InputError(NO_DROPPING)
    options["seed"] = seed_of(options["seed"])
    asked = {**options, "notion": notions[0] if len(notions) == 1 else "all"}
    how = _how(options)
    if how.wanted.joint:  # each notion gets an equal share of delta
        how = how._replace(delta=how.delta / len(notions))
    config = LogConfig.of(options)
    columns = replace(config.columns, others=how.wanted.columns)
    _check(notions, columns, how)
    labelled = [notion for notion in notions if define(notion).needs_label]
    if not labelled:  # only decisions are needed, and all of them are known
        columns = replace(columns, outcome=None, trust_rejected_outcomes=False)
    dated = {name: options[name] for name in ("decided_on", "matures_after", "as_of")}
    maturity = read_maturity(**dated)
    source, cutoff = set_aside(open_log(log, columns, how.limits, config.reading), maturity)
    asked.pop("limits")
    origin = trace(log, source, columns, asked, audit.__kwdefaults__ or {})
    columns = source.columns  # reading may have redefined the groups
    if how.wanted.weight is not None:
        from sellf.audit.weighted import with_weights

        source = with_weights(source, how.wanted.weight)
    if how.wanted.proxy is not None:
        from sellf.audit.proxied import audit_by_proxy

        found = audit_by_proxy(notions, source, columns, how)
        return {notion: replace(one, origin=origin) for notion, one in found.items()}
    if maturity is None:
        return _judged(notions, source, columns, how, origin)
    result: dict[Notion, Audit] = {}
    if labelled:
        people = source.people_by_group()
        result = _judged(
            labelled, source.matured(), columns, how, origin, (maturity, cutoff, people)
        )
    others = [notion for notion in notions if notion not in labelled]
    if others:  # every decision is known, so no row is set aside
        result |= _judged(others, source, columns, how, origin)
    return {notion: result[notion] for notion in notions}


def _judged(
    notions: list[Notion],
    source: "Log",
    columns: Columns,
    how: "How",
    origin: Origin,
    aside: tuple[Any, str | None, dict[Any, int]] = (None, None, {}),
) -> dict[Notion, Audit]:
    """Audit some notions on one part of a log.

    Args:
        notions: the notions to audit.
        source: the part of the log.
        columns: the meaning of its columns.
        how: the checked options.
        origin: the provenance of the audit.
        aside: how long outcomes take, the last day of decisions that count, and the number of rows
            of each group in the whole log; empty if the whole log counts.
    """
    from sellf.audit.evidence import gather
    from sellf.audit.judge import judge
    from sellf.audit.maturity import in_words, waiting
    from sellf.audit.measures import measured
    from sellf.audit.periods import by_period
    from sellf.audit.quality import doubts, quality
    from sellf.logs.cautions import look_alikes, nearly_all_accepted

    if how.by is not None or (how.anytime and columns.time is not None):
        source = source.in_order()
    evidence = gather(
        source,
        columns,
        overlap=how.overlap,
        model=how.model,
        anytime=how.anytime,
        seed=how.seed,
        limits=how.limits,
    )
    total = evidence.sums.by_group()
    data = quality(source, evidence)
    cautions = [
        *doubts(data, columns.features),
        *nearly_all_accepted(evidence.names, total.people, total.accepted),
        *look_alikes(columns, evidence.names),
        *source.warnings,
    ]
    maturity, cutoff, people = aside
    wait = waiting(people, evidence, cutoff)
    assumed, warned = ([], []) if wait is None else in_words(wait, maturity, evidence)
    result: dict[Notion, Audit] = {}
    for notion in notions:
        found = judge(notion, evidence, omega=how.omega, delta=how.delta, anytime=how.anytime)
        found = measured(found, evidence, how.wanted)
        drift = None
        if how.by is not None:
            limits = {"omega": how.omega, "delta": how.delta}
            periods, drift = by_period(notion, evidence, source, how.by, **limits)
            found = replace(found, periods=periods, drift=drift)
        labelled = define(notion).needs_label
        said = [*found.warnings, *([drift] if drift else []), *cautions]
        result[notion] = replace(
            found,
            origin=origin,
            quality=data,
            waiting=wait if labelled else None,
            assumptions=(*found.assumptions, *(assumed if labelled else ())),
            # Each warning once.
            warnings=tuple(dict.fromkeys([*said, *(warned if labelled else ())])),
        )
    return result


class How(NamedTuple):
    """The checked options of an audit."""

    omega: float
    delta: float
    overlap: float | None
    model: "Model"
    by: str | None
    anytime: bool
    seed: int
    limits: Limits
    wanted: "Wanted"


def _how(options: dict[str, Any]) -> How:
    from sellf.audit.aipw import MODELS
    from sellf.audit.measures import wanted

    omega = number("omega", options["omega"], low=0, high=1)
    delta = chance_of_error(options["delta"])
    overlap = options["overlap"]
    if overlap is not None:
        overlap = number("overlap", overlap, low=0, high=1, low_open=True)
    one_of("model", options["model"], MODELS)
    by, anytime = options["by"], bool(options["anytime"])
    limits = options.pop("limits") or DEFAULT
    if not isinstance(limits, Limits):
        raise InputError(f"limits is {limits!r}: give sellf.Limits(...).")
    model, seed = options["model"], options["seed"]
    return How(omega, delta, overlap, model, by, anytime, seed, limits, wanted(options))


def _check(notions: list[Notion], columns: Columns, how: How) -> None:
    """Raise InputError for options that cannot be combined."""
    from sellf.logs.dates import PERIODS

    labelled = next((notion for notion in notions if define(notion).needs_label), None)
    if columns.outcome is None and labelled is not None:
        others = " and ".join(repr(name) for name in TABLE if not define(name).needs_label)
        raise InputError(
            f"outcome is missing: {labelled} needs the outcome of the accepted; only {others} "
            "needs none. Type --outcome and the name of its column."
        )
    by = how.by
    if by is not None and columns.time is None:
        raise InputError(f"by is {by!r} and time is missing: name the column of dates with --time.")
    if columns.time is not None and by is None and not how.anytime:
        raise InputError(
            f"time is {columns.time!r}: say what for, with --by month or with --anytime."
        )
    if by is not None:
        one_of("by", by, PERIODS)


NO_DROPPING = (
    "drop_missing is no longer available: accepted people without an outcome now count as people "
    "whose outcome may be 0 or 1, since leaving them out while the rejected stay makes equal "
    "groups look unequal. Leave --drop-missing out; to restrict the audit to decisions that had "
    "time to show their outcome, type --decided-on COLUMN --matures-after 365d."
)


def seed_of(value: Any) -> int:
    """Return the seed that was given, or a new one."""
    if value is None:
        return secrets.randbits(32)
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise InputError(f"seed is {value!r}: give a whole number, for example --seed 1.")
    if not 0 <= value < 2**63:
        raise InputError(f"seed is {value}: it must be at least 0 and below 2^63.")
    return int(value)


def _check_reading(options: dict[str, Any]) -> None:
    """Raise InputError for unknown options."""
    for name in options:
        if name not in (*OF_COLUMNS, *OF_READING):
            near = get_close_matches(name, (*OF_READING, *(audit.__kwdefaults__ or {})), n=1)
            hint = f": did you mean {near[0]}?" if near else "."
            raise InputError(f"audit has no option {name!r}{hint}")
