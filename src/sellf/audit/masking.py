"""A coverage test of the audit on a user's own data: known outcomes are hidden and audited.

The people with a known outcome form the population. New decisions are simulated with probabilities
that depend on the logged data, the outcomes of the rejected are hidden, and the log is audited. The
true disparity is known, so the coverage of the intervals can be measured.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.special import expit

from sellf.audit import shares
from sellf.audit.measured import Measured
from sellf.audit.shares import Share
from sellf.errors import InputError
from sellf.fairness.notions import Counts, Notion, define, gap
from sellf.logs.config import LogConfig
from sellf.logs.names import say
from sellf.logs.person import Floats
from sellf.logs.reading import open_log
from sellf.logs.rows import Rows
from sellf.numbers import confidence

REPEATS = 100
MOST_PEOPLE = 2_000
"""The largest number of people drawn for each log."""
LEAST, MOST = 0.05, 0.95
"""The smallest and the largest probability of acceptance."""


@dataclass(frozen=True)
class Held:
    """Coverage of the interval under one belief."""

    belief: str
    logs: int
    held: int
    low: float
    high: float
    """`low` and `high` are an exact 95% interval of the coverage."""
    width: float
    """The mean width of the intervals."""


@dataclass(frozen=True)
class MaskTest(Measured):
    """Coverage of intervals in simulated logs whose hidden outcomes are known."""

    key: ClassVar[str] = "mask_test"
    heading: ClassVar[str] = "A test on outcomes that are known"

    notion: str
    truth: float
    population: int
    """The number of people with a known outcome, who form the population."""
    people: int
    """The number of people in each simulated log."""
    delta: float
    results: tuple[Held, ...]

    def _title(self) -> str:
        broken = [one.belief for one in self.results if one.high < 1 - self.delta]
        verdict = f"not reached for {', '.join(broken)}" if broken else "reached"
        return (
            f"{self.notion}, true disparity {self.truth:.3f}: the nominal coverage of "
            f"{confidence(self.delta)} is {verdict}"
        )

    def _table(self) -> dict[str, list[Any]]:
        rows = self.results
        return {
            "belief": [row.belief for row in rows],
            "logs": [row.logs for row in rows],
            "held": [row.held for row in rows],
            "share": [row.held / max(row.logs, 1) for row in rows],
            "low": [row.low for row in rows],
            "high": [row.high for row in rows],
            "mean width": [row.width for row in rows],
        }

    def notes(self) -> list[str]:
        """Return a description of the simulation."""
        return [
            f"The {self.population:,} people whose outcome is known form the population; each "
            f"log draws {self.people:,} of them with replacement, decides with chances that depend "
            "on group and score (or predictions from the features), and hides what a real log "
            "would hide. All beliefs are true here by construction.",
            "low and high: the share that would hold in the long run, with 95% confidence.",
        ]


def mask_test(
    log: Any,
    *,
    notion: Notion = "opportunity",
    delta: float = 0.05,
    seed: int | None = 0,
    repeats: int = REPEATS,
    **options: Any,
) -> MaskTest:
    """Measure how often intervals hold for a log's own people, with simulated decisions.

    Args:
        log: as for `sellf.audit`.
        notion: the notion of fairness.
        delta: one minus the confidence level of the intervals.
        seed: seed of the simulation.
        repeats: the number of logs to simulate.
        options: the meaning of columns and how the log is read, as for `sellf.audit`: group,
            decision and outcome, and a score or features on which decisions depend. Other options
            are not used.
    """
    if repeats < 1:
        raise InputError(f"repeats is {repeats}: simulate 1 log at least, 100 for a firm answer.")
    if options.get("outcome") is None:
        raise InputError("outcome is missing: --mask-test hides outcomes that are known.")
    config = LogConfig.of({**options, "propensity": None})
    rows = open_log(log, config.columns, reading=config.reading).rows
    if rows is None:
        raise InputError("--mask-test needs the rows in memory: test a random part of the log.")
    if not define(notion).needs_label:
        raise InputError(f"{notion} needs no outcome, so there is nothing to hide: test another.")
    known, label = _known(rows)
    codes = rows.codes[known]
    names = [say(name) for name in rows.names]
    if len(np.unique(codes)) < 2 or len(known) < 50:
        raise InputError(
            f"{len(known):,} outcomes are known, of {len(np.unique(codes))} groups: --mask-test "
            "needs 50 or more, of two groups at least."
        )
    rng = np.random.default_rng(seed)
    shown = _shown(rows, known, label, rng)
    chance = _chances(shown, codes, rng)
    truth = _truth(notion, codes, len(names), chance, label)
    people = min(len(known), MOST_PEOPLE)
    counts: dict[str, list[float]] = {}
    for _ in range(repeats):
        drawn = rng.integers(0, len(known), people)
        accepted = rng.random(people) < chance[drawn]
        made = {
            "group": np.array(names, dtype=object)[codes[drawn]],
            "decision": accepted.astype(int),
            "outcome": np.where(accepted, label[drawn], np.nan),
            "propensity": chance[drawn],
            "shown": shown[drawn],
        }
        for belief, (low, high) in _intervals(made, notion, delta, rng).items():
            found = counts.setdefault(belief, [0, 0, 0.0])
            found[0] += 1
            found[1] += low - 1e-9 <= truth <= high + 1e-9
            found[2] += high - low
    results = tuple(_held(belief, *found) for belief, found in counts.items())
    return MaskTest(notion, truth, len(known), people, delta, results)


def _held(belief: str, logs: float, held: float, width: float) -> Held:
    share = Share(held, logs)
    ends = shares.lower(share, 0.025), shares.upper(share, 0.025)
    return Held(belief, int(logs), int(held), *ends, width / max(logs, 1))


def _known(rows: Rows) -> tuple[Any, Floats]:
    """Return the indices of rows with a known outcome, and the outcomes."""
    person = rows.person
    if person.rejected_positive is not None:
        known = np.ones(len(person.accepted), dtype=bool)
        label = person.positive + person.rejected_positive
    else:
        known, label = person.accepted == 1, person.positive
    if person.pending is not None:
        known &= person.pending == 0
    return np.flatnonzero(known), label[known]


def _shown(rows: Rows, known: Any, label: Floats, rng: np.random.Generator) -> Floats:
    """Return what decisions depend on: the score, else a prediction, else random noise."""
    if rows.person.prediction is not None:
        return rows.person.prediction[known]
    if rows.features:
        from sklearn.linear_model import LogisticRegression
        from sklearn.model_selection import cross_val_predict
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler

        from sellf.audit.aipw import design

        matrix, _ = design(rows, "logistic")
        made = make_pipeline(StandardScaler(), LogisticRegression(max_iter=500))
        if 0 < label.sum() < len(label):
            found: Any = cross_val_predict(made, matrix[known], label, method="predict_proba")
            return found[:, 1]
    return rng.random(len(known))


def _chances(shown: Floats, codes: Any, rng: np.random.Generator) -> Floats:
    """Return probabilities of acceptance that increase with `shown` and differ between groups."""
    rank = np.argsort(np.argsort(shown, kind="stable"), kind="stable") / max(len(shown) - 1, 1)
    shift = rng.normal(0.0, 0.7, int(codes.max()) + 1)
    return np.clip(expit(4 * (rank - 0.5) + shift[codes]), LEAST, MOST)


def _truth(notion: Notion, codes: Any, groups: int, chance: Floats, label: Floats) -> float:
    """Return the expected disparity of the simulated decisions in the population."""

    def total(values: Floats) -> Floats:
        return np.bincount(codes, values, groups).astype(float)

    good, bad = total(chance * label), total((1 - chance) * label)
    return float(gap(notion, Counts(total(np.ones(len(label))), total(chance), good, bad)))


def _intervals(
    log: dict[str, Any], notion: Notion, delta: float, rng: np.random.Generator
) -> dict[str, tuple[float, float]]:
    """Return the disparity's interval under every belief."""
    from sellf.audit.run import audit

    columns: dict[str, Any] = {"group": "group", "decision": "decision", "outcome": "outcome"}
    how: dict[str, Any] = {"notion": notion, "delta": delta, "seed": int(rng.integers(2**31))}
    known = audit(log, **columns, **how, propensity="propensity")
    own = audit(log, **columns, **how, features="shown", model="logistic", ladder=True)
    ladders = [part.measures["ladder"] for part in (own, *own.parts.values()) if part.measures]
    found: dict[str, tuple[float, float]] = {}
    if ladders and not own.parts:
        rungs: Any = ladders[0]
        found = {r.belief: (r.interval.low, r.interval.high) for r in rungs.rungs}
    else:
        found["features"] = own.difference.low, own.difference.high
    found["propensities known"] = known.difference.low, known.difference.high
    return found
