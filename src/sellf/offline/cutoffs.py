"""`sellf.cutoffs`: all cut-offs of a score, common to all groups or one per group."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import isnan
from typing import Any, NamedTuple

import numpy as np

from sellf.audit.interval import Interval
from sellf.errors import InputError
from sellf.fairness.checks import chance_of_error, number, short
from sellf.fairness.notions import TABLE, Notion, Rate, define, spread
from sellf.fairness.tables import Table
from sellf.logs.limits import Limits
from sellf.logs.names import say
from sellf.logs.person import Floats
from sellf.logs.values import numbers
from sellf.numbers import confidence, or_none
from sellf.offline.bounds import Part
from sellf.offline.history import History, read, reading_options
from sellf.offline.lines import Chance, chance_of, reward, utility
from sellf.offline.result import ranged
from sellf.offline.whatif import differences, interval, of_spread

COUNT = 21
"""Number of cut-offs that are tried if none are given."""
MOST = 200


class Cutoff(NamedTuple):
    """Estimates for a rule that accepts from a cut-off on."""

    at: tuple[float, ...]
    """The cut-off of each group, or a single one if all groups share it."""
    acceptance: Interval
    reward: Interval
    disparity: Interval


@dataclass(frozen=True)
class Cutoffs(Table):
    """Rules that accept from a cut-off on, with simultaneous confidence bands."""

    score: str
    notion: Notion
    groups: tuple[Any, ...]
    rules: tuple[Cutoff, ...]
    """Rules with one cut-off for all groups."""
    by_group: tuple[Cutoff, ...]
    """Rules with one cut-off per group, chosen for equal estimated utilities; empty by default."""
    now: Cutoff
    """The policy that made the decisions of the log."""
    cost: float
    omega: float
    delta: float
    people: int
    finite_sample: bool
    warnings: tuple[str, ...]

    def best(self, rules: Sequence[Cutoff] | None = None) -> Cutoff | None:
        """Return, of the rules shown to be within omega, the one that earns most at least.

        None if no rule is shown to be within omega.
        """
        rules = (*self.rules, *self.by_group) if rules is None else rules
        kept = [
            rule
            for rule in rules
            if rule.disparity.high <= self.omega and not isnan(rule.disparity.value)
        ]
        return max(kept, key=lambda rule: rule.reward.low, default=None)

    def _title(self) -> str:
        kind = "" if self.finite_sample else ", asymptotic"
        return (
            f"Cut-offs of {self.score}: {self.notion} disparity and reward per person, "
            f"{self.people:,} people ({confidence(self.delta)} simultaneous confidence for each "
            f"measure{kind})"
        )

    def _table(self) -> dict[str, list[Any]]:
        rows = [("now", self.now), *(("common", rule) for rule in self.rules)]
        rows += [("by group", rule) for rule in self.by_group]
        columns: dict[str, list[Any]] = {
            "policy": [kind for kind, _ in rows],
            "cutoff": [_at(rule, self.groups) for _, rule in rows],
        }
        for name in ("acceptance", "reward", "disparity"):
            for end in Interval._fields:
                column = [float(getattr(getattr(rule, name), end)) for _, rule in rows]
                columns[name if end == "value" else f"{name}_{end}"] = column
        return columns

    def _printed(self) -> dict[str, list[Any]]:
        rows = [self.now, *self.rules, *self.by_group]
        names = ("acceptance", "reward", "disparity")
        told = {name: [ranged(getattr(rule, name)) for rule in rows] for name in names}
        table = self._table()
        return {name: table[name] for name in ("policy", "cutoff")} | told

    def __str__(self) -> str:
        best = self.best()
        if best is None:
            told = f"no cut-off is shown to be within {self.omega:g}."
        else:
            told = (
                f"largest reward among those shown to be within {self.omega:g}: "
                f"{_at(best, self.groups)}, reward {best.reward.low:.3f} to "
                f"{best.reward.high:.3f} per person (now "
                f"{self.now.reward.low:.3f} to {self.now.reward.high:.3f}), disparity "
                f"{best.disparity.low:.3f} to {best.disparity.high:.3f} (now "
                f"{self.now.disparity.low:.3f} to {self.now.disparity.high:.3f})."
            )
            if best.reward.high < self.now.reward.low:
                told += " It earns less than now."
        return "\n".join([super().__str__(), "", told, *(f"note: {w}" for w in self.warnings)])

    def to_dict(self) -> dict[str, Any]:
        """Return all results as plain values."""
        table = self._table()
        cells = ([or_none(x) if isinstance(x, float) else x for x in own] for own in table.values())
        rows = [dict(zip(table, row, strict=True)) for row in zip(*cells, strict=True)]
        keys = ("score", "notion", "cost", "omega", "delta", "people", "finite_sample")
        return {name: getattr(self, name) for name in keys} | {"rows": rows}

    def to_json(self) -> str:
        """Return all results as JSON."""
        return json.dumps(self.to_dict(), indent=2, ensure_ascii=False, allow_nan=False)

    def plot(self) -> Any:
        """Draw reward against disparity, with bands; needs matplotlib."""
        from sellf.offline.plots import draw_cutoffs

        return draw_cutoffs(self)


def _at(rule: Cutoff, groups: Sequence[Any]) -> str:
    if not rule.at:
        return "as decided"
    if len(rule.at) == 1:
        return f"{rule.at[0]:.6g}"
    return ", ".join(f"{say(g)} {at:.6g}" for g, at in zip(groups, rule.at, strict=True))


def cutoffs(
    log: Any,
    *,
    by: str,
    cost: float,
    notion: Notion = "opportunity",
    at: Sequence[float] | None = None,
    per_group: bool = False,
    omega: float = 0.05,
    delta: float = 0.05,
    limits: Limits | None = None,
    progress: Callable[[int, int], None] | None = None,
    **options: Any,
) -> Cutoffs:
    """Estimate the disparity and reward of every cut-off of a score, from a log of decisions.

    Args:
        log: as for `sellf.audit`.
        by: the column of the score, on any scale; people at or above the cut-off are accepted.
        cost: cost of accepting a person, as a share of what a good outcome pays.
        notion: the measure of fairness.
        at: the cut-offs; None: 21 cut-offs, from accepting nearly everyone to nearly nobody.
        per_group: whether to also try cut-offs that differ between groups.
        omega: the tolerated disparity.
        delta: probability that any of the intervals of a measure misses.
        limits: limits on the size of the log.
        progress: called with the number of rules done and their total number.
        options: meaning of the log's columns and how it is read, as for `sellf.audit`.
    """
    delta = chance_of_error(delta)
    omega = number("omega", omega, low=0, high=1)
    cost = number("cost", cost, low=0, high=1)
    if not isinstance(by, str):
        raise InputError(f"by is {short(by)}: name the column of the score.")
    if not isinstance(per_group, bool):
        raise InputError(f"per_group is {short(per_group)}: give True or False.")
    rate = define(notion).alone
    history = read(log, reading_options(options), (by,), limits, "cutoffs")
    values = numbers(history.extra[by], by, "cutoffs")
    places = _places(values, at)
    rules = _Rules(history, values, rate, cost)
    total = len(places) * (1 + per_group * len(history.rows.names))
    told = progress or (lambda done, of: None)
    common = []
    for place in places:
        common.append(rules.common(float(place), delta / len(places)))
        told(len(common), total)
    return Cutoffs(
        score=by,
        notion=notion,
        groups=tuple(history.rows.names),
        rules=tuple(common),
        by_group=tuple(rules.apart(places, delta, told, total)) if per_group else (),
        now=rules.now(delta),
        cost=cost,
        omega=omega,
        delta=delta,
        people=history.everyone.people,
        finite_sample=not history.estimated,
        warnings=(*history.warnings, *((history.void,) if history.void else ())),
    )


def _places(values: Floats, at: Sequence[float] | None) -> Floats:
    if at is None:
        # Quantiles that are observed values: cut-offs in between would accept the same people.
        found = np.quantile(values, np.linspace(0.02, 0.98, COUNT), method="closest_observation")
        return np.unique(found)
    if isinstance(at, str) or not hasattr(at, "__len__"):
        raise InputError(f"at is {short(at)}: give a list of cut-offs.")
    if not 0 < len(at) <= MOST:
        raise InputError(f"at has {len(at)} cut-offs: give between 1 and {MOST}.")
    return np.unique([number("at", place, low=-np.inf) for place in at])


@dataclass(frozen=True)
class _Rules:
    """Cut-off rules evaluated on one history."""

    history: History
    values: Floats
    rate: Rate
    cost: float

    def now(self, delta: float) -> Cutoff:
        """Return the estimates for the policy that made the decisions."""
        return self._rule((), self.history.current, delta)

    def common(self, place: float, delta: float) -> Cutoff:
        """Return the estimates for one cut-off for everybody."""
        return self._rule((place,), (self.values >= place).astype(float), delta)

    def _rule(self, at: tuple[float, ...], chance: Floats | None, delta: float) -> Cutoff:
        sample = self.history.everyone
        every = chance_of(chance)
        accepted = Part(1.0, sample, utility(TABLE["demographic"].alone, every), "rule")
        earned = Part(1.0, sample, reward(every, self.cost), "rule")
        target = utility(self.rate, every)
        own = [Part(1.0, sample, target, "rule") for _, sample in self.history.groups]
        lower, found = differences(own, delta)
        return Cutoff(
            at,
            interval([accepted], delta, 0.0, 1.0),
            interval([earned], delta, -self.cost, 1 - self.cost),
            of_spread(lower, float(spread(np.array(found)))),
        )

    def apart(
        self, places: Floats, delta: float, told: Callable[[int, int], None], total: int
    ) -> list[Cutoff]:
        """Return rules with one cut-off per group that give about equal utilities.

        The intervals of every group's utility, acceptance and reward at every cut-off hold
        simultaneously; the intervals of a rule follow from them for any combination of cut-offs.
        """
        groups = self.history.groups
        each = delta / (len(places) * len(groups))
        tables: list[list[tuple[Interval, Interval, Interval]]] = []
        for _, sample in groups:
            own = []
            for place in places:
                chance = Chance((self.values >= place).astype(float))
                parts = (
                    (utility(TABLE["demographic"].alone, chance), 0.0, 1.0),
                    (reward(chance, self.cost), -self.cost, 1 - self.cost),
                    (utility(self.rate, chance), 0.0, 1.0),
                )
                found = [
                    interval([Part(1.0, sample, target, "rule")], each, low, high)
                    for target, low, high in parts
                ]
                own.append((found[0], found[1], found[2]))
                told(len(places) + sum(map(len, tables)) + len(own), total)
            tables.append(own)
        shares = [sample.people / self.history.everyone.people for _, sample in groups]
        chosen: dict[tuple[int, ...], None] = {}
        for level in np.linspace(0.02, 0.98, COUNT):
            picks = [
                min(
                    range(len(own)),
                    key=lambda k, own=own, level=level: _distance(own[k][2].value, level),
                )
                for own in tables
            ]
            chosen[tuple(picks)] = None
        return [_combined(picks, places, tables, shares) for picks in chosen]


def _distance(value: float, level: float) -> float:
    """Return how far a utility is from a level; an undefined one is the farthest."""
    return float("inf") if isnan(value) else abs(value - level)


def _combined(
    picks: tuple[int, ...],
    places: Floats,
    tables: list[list[tuple[Interval, Interval, Interval]]],
    shares: list[float],
) -> Cutoff:
    cells = [own[k] for own, k in zip(tables, picks, strict=True)]

    def mixed(which: int) -> Interval:
        ends = zip(*(cell[which] for cell in cells), strict=True)
        return Interval(*(float(np.dot(shares, side)) for side in ends))

    low = np.array([cell[2].low for cell in cells])
    high = np.array([cell[2].high for cell in cells])
    values = np.array([cell[2].value for cell in cells])
    lower = low[:, None] - high[None, :]
    np.fill_diagonal(lower, 0.0)
    at = tuple(float(places[k]) for k in picks)
    return Cutoff(at, mixed(0), mixed(1), of_spread(lower, float(spread(values))))
