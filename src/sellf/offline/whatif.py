"""`sellf.whatif`: off-policy comparison of a policy with the one that made a log's decisions."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from math import isnan
from typing import Any

import numpy as np

from sellf.audit.interval import Interval
from sellf.errors import InputError
from sellf.fairness.checks import chance_of_error, number, short
from sellf.fairness.notions import TABLE, Definition, Notion, Rate, define, spread
from sellf.logs.columns import names_of
from sellf.logs.limits import Limits
from sellf.logs.person import Floats
from sellf.offline import bounds
from sellf.offline.bounds import Part
from sellf.offline.history import ARRAY, History, Policy, chances, read, reading_options
from sellf.offline.lines import Chance, Target, chance_of, reward, utility
from sellf.offline.pairs import spread_change
from sellf.offline.result import Change, WhatIf
from sellf.offline.sample import Sample

NOW, PROPOSED = "now", "proposed"
NOTHING = Interval(0.0, 0.0, 0.0)
STEPS = 4
"""Number of steps in the search for the ends of a relative change."""
CLOSE = 0.005
"""Tolerance of that search, as a share of the distance from the estimate to the end."""
BEYOND = 0.02
"""Share of the distance to the estimated end by which a step stays outside of it."""
MOST_TIMES = 64.0
"""Largest relative change that is reported, as a multiple of the current value."""
WHERE = 0.1
"""Share of delta spent on bounding each of two disparities when their change is bounded."""


def whatif(
    log: Any,
    *,
    policy: Policy,
    cost: float | None = None,
    notions: Iterable[Notion] | None = None,
    omega: float = 0.05,
    delta: float = 0.05,
    columns: str | Sequence[str] = (),
    limits: Limits | None = None,
    **options: Any,
) -> WhatIf:
    """Compare another policy with the one that made the decisions of a log, on the same people.

    Args:
        log: as for `sellf.audit`.
        policy: a column with the probability that the new policy accepts each person (0 or 1 for a
            rule), an array of such probabilities, a function of the columns, or a model with
            `predict_proba`.
        cost: cost of accepting a person, as a share of what a good outcome pays; None: the reward
            is not estimated.
        notions: measures of fairness to compare; None: all that depend on decisions.
        omega: the tolerated disparity.
        delta: probability with which each interval may miss.
        columns: the columns that are passed to a function or a model.
        limits: limits on the size of the log.
        options: meaning of the log's columns and how it is read, as for `sellf.audit`.
    """
    delta = chance_of_error(delta)
    omega = number("omega", omega, low=0, high=1)
    cost = None if cost is None else number("cost", cost, low=0, high=1)
    wanted = _all_that_move() if notions is None else _named(notions)
    log, column = _joined(log, policy)
    extra = (column,) if isinstance(column, str) else names_of(columns, "columns")
    named = "policy" if isinstance(column, str) else "columns"
    history = read(log, reading_options(options), extra, limits, named)
    proposed = chances(column, history)
    _refuse_decisions(proposed, history)
    # Only a policy that is declared to be the current one is known to agree with it on everybody;
    # one that agrees on the people of the log may treat others differently.
    same = isinstance(policy, str) and policy == options.get("propensity") and history.known
    question = Question(history, {NOW: history.current, PROPOSED: proposed}, delta, same)
    name = policy if isinstance(policy, str) else getattr(policy, "__name__", "the policy")
    return compared(question, name, wanted, cost, omega)


def compared(
    question: "Question", name: str, notions: Sequence[Definition], cost: float | None, omega: float
) -> WhatIf:
    """Return the comparison of a proposed policy with the current one.

    Args:
        question: both policies.
        name: name of the proposed policy.
        notions: measures of fairness.
        cost: cost of accepting a person; None: the reward is not estimated.
        omega: the tolerated disparity.
    """
    history, proposed = question.history, question.policies[PROPOSED]
    if proposed is None:
        raise ValueError("the proposed policy needs probabilities of acceptance")
    changes = [*question.acceptance(), *(question.reward(cost) if cost is not None else [])]
    for definition in notions:
        changes += question.notion(definition)
    return WhatIf(
        changes=tuple(changes),
        cost=cost,
        omega=omega,
        delta=question.delta,
        people=history.people,
        finite_sample=not history.estimated,
        policy=name,
        assumptions=tuple(_assumed(history)),
        warnings=tuple(_warned(history, proposed)),
        void=history.void,
        unidentified=_unidentified(history, proposed),
        seed=history.seed,
    )


def _all_that_move() -> list[Definition]:
    return [entry for entry in TABLE.values() if len(entry.rates) == 1 and not entry.delayed]


def _refuse_decisions(proposed: Floats, history: History) -> None:
    """Refuse the decisions of the log as a policy: they are draws, and no function of features."""
    p = history.person.propensity
    drawn = p is not None and ((p > 0) & (p < 1)).any()
    if history.known and drawn and (proposed == history.person.accepted).all():
        raise InputError(
            "policy equals the decisions of the log in every row, although its propensities say "
            "that they were drawn: name the propensity column for the policy that decided, or give "
            "probabilities that do not depend on the decisions."
        )


def _named(notions: Iterable[Notion]) -> list[Definition]:
    if isinstance(notions, str):
        return [define(notions)]
    if not isinstance(notions, Iterable):
        raise InputError(f"notions is {short(notions)}: give a list of names of notions.")
    return [define(name) for name in notions]


def _joined(log: Any, policy: Policy) -> tuple[Any, Policy]:
    """Return the log with an array of probabilities added as a column, and the column's name."""
    if isinstance(policy, str) or callable(policy) or hasattr(policy, "predict_proba"):
        return log, policy
    try:
        values = np.asarray(policy)
        values = values.astype(np.float64) if values.dtype.kind in "biufO" else None
    except (TypeError, ValueError, OverflowError):
        values = None
    if values is None or values.ndim != 1:
        raise InputError(
            f"policy is {short(policy)}: give a column with the probabilities of acceptance, an "
            "array of them, a function of the columns, or a model with predict_proba."
        )
    if isinstance(log, dict):
        return {**log, ARRAY: values}, ARRAY
    import narwhals as nw

    try:
        frame = nw.from_native(log, eager_only=True)
    except TypeError:
        raise InputError(
            "policy is an array, but the rows of this log have no fixed order: name a column with "
            "the probabilities instead, or give a function of the columns."
        ) from None
    if values.shape != (len(frame),):
        raise InputError(
            f"policy has shape {values.shape} and the log {len(frame):,} rows: give one "
            "probability of acceptance for each row."
        )
    column = nw.new_series(ARRAY, values.tolist(), backend=frame.implementation)
    return nw.to_native(frame.with_columns(column)), ARRAY


@dataclass(frozen=True)
class Question:
    """Two policies on one history."""

    history: History
    policies: dict[str, Floats | None]
    """Probabilities of acceptance by row; None: the decisions of the log."""
    delta: float
    same: bool = False
    """Whether both are the same policy, for people outside the log too."""

    def acceptance(self) -> list[Change]:
        """Return the change of the acceptance rate, overall and by group."""
        rate = TABLE["demographic"].alone
        everyone = self._change("acceptance", None, self._of_everyone(lambda c: utility(rate, c)))
        return [everyone, *self._by_group("acceptance", rate)]

    def reward(self, cost: float) -> list[Change]:
        """Return the change of the reward per person."""
        parts = self._of_everyone(lambda c: reward(c, cost))
        found = self._change("reward", None, parts, low=-cost, high=1 - cost)
        return [found._replace(relative=self._relative(parts, found))]

    def notion(self, definition: Definition) -> list[Change]:
        """Return the change of the disparity and of every group's utility."""
        found: list[Change] = []
        for rate in definition.rates:
            found.append(self._disparity(rate))
            if rate.needs_label:  # otherwise it is the acceptance rate, already included
                found += self._by_group(rate.name, rate)
        return found

    def _relative(self, parts: dict[str, Part], found: Change) -> Interval | None:
        """Return the change as a share of the current value; None if that may be 0 or less.

        A ratio r of the two rewards is ruled out if proposed - r now is shown to be above 0, or to
        be below it (Fieller); the current value is above 0 with the same confidence.
        """
        if self.same or found.now.low <= 0:
            return NOTHING if self.same and found.now.low > 0 else None
        ratio = found.proposed.value / found.now.value

        def at(r: float) -> list[Part]:
            now = parts[NOW]
            return [parts[PROPOSED], Part(-r, now.sample, now.target, now.name)]

        def end(bound: Callable[[float], float], way: float) -> float | None:
            """Return a relative change from which on all are ruled out: their bound is above 0."""
            step, at_estimate = max(found.change.width / found.now.value, 1e-6), bound(ratio)
            while (value := bound(ratio + way * step)) <= 0:
                step *= 2
                if step > MOST_TIMES:
                    return None
            inside, outside = (0.0, min(at_estimate, 0.0)), (step, value)
            for _ in range(STEPS):
                # The bound is nearly linear in the ratio.
                share = (1 - BEYOND) * outside[1] / (outside[1] - inside[1])
                tried = outside[0] + share * (inside[0] - outside[0])
                value = bound(ratio + way * tried)
                if value <= 0:
                    inside = (tried, value)
                    continue
                close = value <= CLOSE * (value - inside[1])
                outside = (tried, value)
                if close:
                    break
            return ratio + way * outside[0] - 1

        low = end(lambda r: bounds.lower(at(r), self.delta / 2), -1.0)
        high = end(lambda r: -bounds.upper(at(r), self.delta / 2), 1.0)
        return None if low is None or high is None else Interval(low, ratio - 1, high)

    @cached_property
    def _chances(self) -> dict[str, Chance | None]:
        return {name: chance_of(values) for name, values in self.policies.items()}

    def _of_everyone(self, target: Callable[[Chance | None], Target]) -> dict[str, Part]:
        return _parts(self.history.everyone, self._chances, target)

    def _parts(self, rate: Rate) -> list[dict[str, Part]]:
        """Return each group's utility under both policies."""
        return [
            _parts(sample, self._chances, lambda chance: utility(rate, chance))
            for _, sample in self.history.groups
        ]

    def _by_group(self, measure: str, rate: Rate) -> list[Change]:
        names = self.history.rows.names
        each = self.delta / len(names)
        return [
            self._change(measure, name, parts, delta=each)
            for name, parts in zip(names, self._parts(rate), strict=True)
        ]

    def _change(
        self,
        measure: str,
        group: Any,
        parts: dict[str, Part],
        *,
        low: float = 0.0,
        high: float = 1.0,
        delta: float | None = None,
    ) -> Change:
        delta = self.delta if delta is None else delta
        now, proposed = (interval([parts[name]], delta, low, high) for name in (NOW, PROPOSED))
        if self.same and not isnan(now.value):
            return Change(measure, group, now, proposed, NOTHING)
        pair = [parts[PROPOSED], negative(parts[NOW])]
        found = interval(pair, delta, low - high, high - low)
        middle = _within(proposed.value - now.value, found.low, found.high)
        return Change(measure, group, now, proposed, found._replace(value=middle))

    def _disparity(self, rate: Rate) -> Change:
        """Return the largest difference between groups under both policies, and its change."""
        parts = self._parts(rate)
        found, known = {}, {}
        for name in (NOW, PROPOSED):
            own = [group[name] for group in parts]
            lower, values = differences(own, self.delta)
            # A verdict that leaves out a group would not be about all of them.
            value = float("nan") if any(map(isnan, values)) else float(spread(np.array(values)))
            found[name] = of_spread(lower, value)
            known[name] = differences(own, WHERE * self.delta)[0]
        # Delta is split between both disparities and their change, most of it for the change.
        if self.same and not isnan(found[NOW].value):
            return Change(rate.name, None, found[NOW], found[PROPOSED], NOTHING)
        low, high = spread_change(
            known[NOW], known[PROPOSED], _moved(parts, (1 - 2 * WHERE) * self.delta)
        )
        middle = _within(found[PROPOSED].value - found[NOW].value, low, high)
        return Change(rate.name, None, found[NOW], found[PROPOSED], Interval(low, middle, high))


def _parts(
    sample: Sample,
    chances: dict[str, Chance | None],
    target: Callable[[Chance | None], Target],
) -> dict[str, Part]:
    return {name: Part(1.0, sample, target(chance), name) for name, chance in chances.items()}


def negative(part: Part) -> Part:
    """Return the same utility with the opposite sign."""
    return Part(-part.sign, part.sample, part.target, part.name)


def interval(parts: Sequence[Part], delta: float, low: float, high: float) -> Interval:
    """Return an interval for a sum of utilities, clipped to its possible range."""
    below, above = bounds.lower(parts, delta / 2), bounds.upper(parts, delta / 2)
    below, above = float(max(below, low)), float(min(above, high))
    if below > above:  # with probability delta at most; nothing is claimed then
        below, above = low, high
    return Interval(below, _within(bounds.estimate(parts), below, above), above)


def differences(parts: Sequence[Part], delta: float) -> tuple[Floats, list[float]]:
    """Return lower bounds on every group's utility minus every other, and the estimates."""
    count = len(parts)
    lower = np.zeros((count, count))
    for i, j in combinations(range(count), 2):
        pair = [parts[i], negative(parts[j])]
        low, high = bounds.both(pair, delta / (count * (count - 1)))
        lower[i, j], lower[j, i] = max(low, -1.0), max(-high, -1.0)
    return lower, [_within(bounds.estimate([part]), 0.0, 1.0) for part in parts]


def of_spread(lower: Floats, value: float) -> Interval:
    """Return an interval for the largest minus the smallest utility."""
    low, high = max(float(lower.max()), 0.0), min(float(-lower.min()), 1.0)
    low, high = (low, high) if low <= high else (0.0, 1.0)
    return Interval(low, _within(value, low, high), high)


def _within(value: float, low: float, high: float) -> float:
    """Return the value clipped to the interval; an undefined one stays NaN."""
    return float(np.clip(value, low, high))


def _moved(parts: Sequence[dict[str, Part]], delta: float) -> Floats:
    """Return lower bounds on the change of every difference between two groups."""
    count = len(parts)
    lower = np.zeros((count, count))
    for i, first in enumerate(parts):
        for j, second in enumerate(parts):
            if i != j:
                four = [
                    first[PROPOSED],
                    negative(first[NOW]),
                    negative(second[PROPOSED]),
                    second[NOW],
                ]
                lower[i, j] = max(bounds.lower(four, delta / (count * (count - 1))), -2.0)
    return lower


def _assumed(history: History) -> list[str]:
    lines = ["future people are like those of the log, and independent of each other"]
    if history.person.rejected_positive is not None:
        return [*lines, "the recorded outcomes of the rejected are their true outcomes"]
    if history.known:
        lines.append("the propensities are the chances with which the decisions were drawn")
    elif history.estimated:
        lines.append(
            "given the features, decisions are independent of outcomes, and the models of both "
            "are accurate: the intervals are asymptotic"
        )
    else:
        lines.append("nothing about the rejected: each of their outcomes may be good or bad")
    return [*lines, "neither who applies nor how outcomes arise depends on the policy"]


def _unidentified(history: History, proposed: Floats) -> float:
    """Return the share of people whom the policy accepts and the log has no information about."""
    p = history.person.propensity
    if history.person.rejected_positive is not None:
        return 0.0
    weak = history.person.accepted == 0 if p is None else p < history.overlap
    return float((proposed * weak).mean())


def _warned(history: History, proposed: Floats) -> list[str]:
    found = list(history.warnings)
    share = _unidentified(history, proposed)
    if share > 0.001:
        found.append(
            f"the policy accepts people about whom the log has no information ({share:.1%} of "
            "all): their outcomes may be good or bad, which widens the intervals."
        )
    return found
