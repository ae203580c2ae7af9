"""`sellf.improve`: a policy that earns as much and is provably within a tolerance, from a log.

The people of the log are split. One part is learned from; on the other each candidate's disparity
and reward are bounded, by bounds that hold at every sample size. Candidates are tested in an order
that was fixed before: from the safest to the boldest for the disparity, from the boldest to the
safest for the reward, each until the first that fails. So of all that pass, with probability
1 - delta none is beyond the tolerance, and with probability 1 - delta none earns too little
(fixed-sequence testing: no part of delta is lost to the number of candidates).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sellf.errors import InputError
from sellf.fairness.checks import number, one_of
from sellf.fairness.notions import Notion, Rate, define
from sellf.fairness.tables import Table
from sellf.logs.columns import names_of
from sellf.logs.limits import Limits
from sellf.logs.names import Values
from sellf.logs.person import Floats
from sellf.offline import bounds
from sellf.offline.bounds import Part
from sellf.offline.card import card_of
from sellf.offline.history import History, read, reading_options
from sellf.offline.learn import (
    Candidate,
    Lesson,
    Wish,
    as_chance,
    candidates,
    describe,
)
from sellf.offline.lines import Line, Target, reward, utility
from sellf.offline.policy import KINDS, Kind, LearnedPolicy
from sellf.offline.result import WhatIf
from sellf.offline.whatif import NOW, PROPOSED, Question, compared, negative

LEARNED = 0.5
"""The share of people that policies are learned from."""
FEWEST = 400
"""People that a log needs at least."""


@dataclass(frozen=True)
class Tested:
    """A candidate with what the people that it was not learned from say."""

    candidate: Candidate
    disparity: float
    """With probability 1 - delta the disparity is at most this,"""
    reward: float
    """and the reward exceeds what is asked for by at least this."""
    fair: bool
    """Whether it and all safer ones are within the tolerance."""
    earns: bool
    """Whether it and all bolder ones earn what is asked for."""


@dataclass(frozen=True)
class Improvement(Table):
    """A certified policy, or why there is none."""

    policy: LearnedPolicy | None
    notion: Notion
    omega: float
    delta: float
    cost: float
    reward_at_least: float
    tested: tuple[Tested, ...]
    chosen: int | None
    people: tuple[int, int]
    """How many were learned from, and how many certified on."""
    whatif: WhatIf | None
    """The chosen policy beside the one that decided, on the people that were not learned from."""
    sentence: str
    finite_sample: bool
    warnings: tuple[str, ...]

    @property
    def certified(self) -> bool:
        """Whether there is a policy that is certified."""
        return self.policy is not None

    def _title(self) -> str:
        return self.sentence

    def _table(self) -> dict[str, list[Any]]:
        rows = self.tested
        return {
            "candidate": [str(k + 1) for k in range(len(rows))],
            "followed": [one.candidate.policy.follow for one in rows],
            "bound aimed at": [one.candidate.target for one in rows],
            "estimated disparity": [one.candidate.disparity for one in rows],
            "estimated reward": [one.candidate.reward for one in rows],
            "bound": [one.disparity for one in rows],
            "reward above floor by": [one.reward for one in rows],
            "within omega": ["yes" if one.fair else "no" for one in rows],
            "earns enough": ["yes" if one.earns else "no" for one in rows],
            "chosen": ["<-" if k == self.chosen else "" for k in range(len(rows))],
        }

    def __str__(self) -> str:
        parts = [super().__str__()]
        if self.policy is not None and self.policy.kind == "scorecard":
            parts.append(str(self.policy))
        if self.whatif is not None:
            parts.append(str(self.whatif))
        parts += [f"note: {text}" for text in self.warnings]
        return "\n\n".join(parts)

    def to_dict(self) -> dict[str, Any]:
        """Return every figure as plain values."""
        table = self._table()
        rows = [dict(zip(table, row, strict=True)) for row in zip(*table.values(), strict=True)]
        names = ("notion", "omega", "delta", "cost", "reward_at_least", "sentence", "certified")
        return {name: getattr(self, name) for name in names} | {
            "people": list(self.people),
            "finite_sample": self.finite_sample,
            "candidates": rows,
            "whatif": None if self.whatif is None else self.whatif.to_dict(),
            "warnings": list(self.warnings),
        }

    def save(self, path: str | Path) -> Path:
        """Write the policy into a new folder; `sellf.load_policy` reads it."""
        if self.policy is None:
            raise InputError(f"there is no certified policy to save: {self.sentence}")
        return self.policy.save(path)


def improve(
    log: Any,
    *,
    features: str | Sequence[str],
    cost: float,
    omega: float = 0.05,
    notion: Notion = "opportunity",
    kind: Kind = "logistic",
    use_group: bool = False,
    explore: float = 0.0,
    reward_at_least: float = 1.0,
    delta: float = 0.05,
    limits: Limits | None = None,
    progress: Callable[[int, int], None] | None = None,
    **options: Any,
) -> Improvement:
    """Find a policy that is provably within a tolerance and earns what the current one does.

    Args:
        log: as for `sellf.audit`.
        features: the columns that the policy decides from.
        cost: what accepting costs, as a share of what a good outcome pays.
        omega: the disparity that is tolerated.
        notion: the measure of fairness.
        kind: "logistic", "scorecard" (whole points, monotone) or "boosting".
        use_group: whether the policy may see the group; else the group only serves to measure.
        explore: the smallest chance of acceptance, so that the next log can be learned from.
        reward_at_least: the share of the current policy's reward that must be kept.
        delta: the chance with which each of the two promises may fail.
        limits: how large a log may be.
        progress: called with the steps done, and all.
        options: what the log's columns mean and how it is read, as for `sellf.audit`.
    """
    delta = number("delta", delta, low=0, high=0.5, low_open=True)
    omega = number("omega", omega, low=0, high=1, low_open=True)
    cost = number("cost", cost, low=0, high=1)
    explore = number("explore", explore, low=0, high=0.5)
    share = number("reward_at_least", reward_at_least, low=0, high=2)
    one_of("kind", kind, KINDS)
    rate = define(notion).alone
    names = names_of(features, "features")
    if not names:
        raise InputError("features is empty: name the columns that the policy decides from.")
    history = read(log, reading_options({"features": (), **options}), names, limits)
    if history.everyone.people < FEWEST:
        raise InputError(
            f"the log has {history.everyone.people:,} people: to learn a policy and to certify it "
            f"on others takes {FEWEST} at least."
        )
    learn, certify = _split(history)
    columns = _columns(history, names, use_group)
    wish = Wish(
        rate,
        cost,
        omega,
        delta,
        kind,
        use_group,
        explore,
        len(certify),
        progress or (lambda done, of: None),
    )
    path, model, encoding = candidates(_lesson(history, columns, learn), wish)
    others = {name: values[certify] for name, values in columns.items()}
    rest = _others(history, certify, as_chance(model, encoding, others))
    tested = _test(path, rest, others, rate, cost, omega, delta, share)
    found = Improvement(
        policy=None,
        notion=notion,
        omega=omega,
        delta=delta,
        cost=cost,
        reward_at_least=share,
        tested=tuple(tested),
        chosen=max((k for k, one in enumerate(tested) if one.fair and one.earns), default=None),
        people=(history.everyone.people - rest.everyone.people, rest.everyone.people),
        whatif=None,
        sentence="",
        finite_sample=not history.estimated,
        warnings=(*history.warnings, *((history.void,) if history.void else ())),
    )
    return _with_policy(found, rest, others)


def _columns(history: History, names: Sequence[str], use_group: bool) -> dict[str, Values]:
    """Return the columns that a policy decides from, the group among them if it may see it."""
    found = {name: history.extra[name] for name in names}
    if use_group:
        found["group"] = np.array([str(n) for n in history.rows.names])[history.rows.codes]
    return found


def _lesson(history: History, columns: dict[str, Values], rows: NDArray[np.intp]) -> Lesson:
    return Lesson(
        history.person.take(rows),
        history.rows.codes[rows],
        len(history.rows.names),
        {name: values[rows] for name, values in columns.items()},
        history.overlap,
        history.seed,
    )


def _with_policy(found: Improvement, rest: History, columns: dict[str, Values]) -> Improvement:
    """Return the result with the chosen policy, what it changes and its card, or why there is none.

    Args:
        found: without all that.
        rest: the people that were not learned from.
        columns: what the policy decides about them from.
    """
    if found.chosen is None:
        return replace(found, sentence=_refusal(found))
    policy = found.tested[found.chosen].candidate.policy
    chances = {NOW: rest.current, PROPOSED: policy.probability(columns)}
    question = Question(rest, chances, found.delta)
    notions = [define(found.notion)]
    beside = compared(question, "the new policy", notions, found.cost, found.omega)
    found = replace(found, whatif=beside, sentence=_promise(found))
    card = card_of(found, policy)
    return replace(found, policy=describe(policy, {"promise": found.sentence}, card))


def _split(history: History) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the rows to learn from and those to certify on; all rows of a person go together."""
    units = history.everyone.units
    rng = np.random.default_rng([history.seed, history.person.digest(), 21])
    chosen = rng.random(history.everyone.people) < LEARNED
    return np.flatnonzero(chosen[units]), np.flatnonzero(~chosen[units])


def _others(history: History, rows: NDArray[np.intp], guess: Floats) -> History:
    """Return the people to certify on, with predictions that others were learned from."""
    part = history.rows.take(rows)
    if not history.estimated and part.person.propensity is not None:
        part = replace(part, person=part.person._replace(prediction=guess))
    return replace(history, rows=part, extra={n: v[rows] for n, v in history.extra.items()})


def _test(
    path: Sequence[Candidate],
    rest: History,
    columns: dict[str, Any],
    rate: Rate,
    cost: float,
    omega: float,
    delta: float,
    share: float,
) -> list[Tested]:
    """Return every candidate with its bounds, in the order of the path."""
    found = []
    for one in path:
        chance = one.policy.probability(columns)
        found.append(
            (one, _disparity(rest, rate, chance, delta), _gain(rest, chance, cost, delta, share))
        )
    fair = np.logical_and.accumulate([high <= omega for _, high, _ in found])
    earns = np.logical_and.accumulate([low >= 0 for _, _, low in reversed(found)])[::-1]
    return [
        Tested(one, high, low, bool(ok), bool(pays))
        for (one, high, low), ok, pays in zip(found, fair, earns, strict=True)
    ]


def _disparity(rest: History, rate: Rate, chance: Floats, delta: float) -> float:
    """Return a number that the disparity is above with probability delta at most."""
    parts = [
        Part(1.0, sample, utility(rate, chance[rows], len(rows)), PROPOSED)
        for _, rows, sample in rest.groups
    ]
    count = len(parts)
    each = delta / (count * (count - 1))
    ends = [
        bounds.upper([first, negative(second)], each)
        for i, first in enumerate(parts)
        for j, second in enumerate(parts)
        if i != j
    ]
    return float(min(max(ends), 1.0))


def _gain(rest: History, chance: Floats, cost: float, delta: float, share: float) -> float:
    """Return a number that reward less what is asked for is below with probability delta."""
    rows, sample = len(chance), rest.everyone
    now = reward(rest.current, cost, rows)
    asked = Target(_scaled(now.of, share), None, shared=True)
    parts = [
        Part(1.0, sample, reward(chance, cost, rows), PROPOSED),
        Part(-1.0, sample, asked, NOW),
    ]
    return float(max(bounds.lower(parts, delta), -2.0))


def _scaled(line: Line, share: float) -> Line:
    return line * share


def _promise(found: Improvement) -> str:
    kind = "" if found.finite_sample else " (asymptotically)"
    kept = (
        "earns at least what the current one does"
        if found.reward_at_least == 1
        else f"earns at least {found.reward_at_least:.0%} of what the current one does"
    )
    return (
        f"certified: with {1 - found.delta:.0%} confidence{kind} the policy's {found.notion} "
        f"disparity is at most {found.omega:g}; with {1 - found.delta:.0%} confidence it {kept}."
    )


def _refusal(found: Improvement) -> str:
    """Return why there is no certified policy, and what would change that."""
    first, last = found.tested[0], found.tested[-1]
    start = "no policy is certified with this log: "
    if not first.fair:
        excess = first.disparity - first.candidate.disparity
        room = found.omega - first.candidate.disparity
        if room > 0.1 * found.omega:
            times = (excess / room) ** 2
            more = (
                f"about {_round(found.people[1] * times):,} people to certify on instead of "
                f"{found.people[1]:,} would be needed, or more exploration where the log tells "
                "little"
            )
        else:
            more = "no rule of this kind keeps the groups that close; try another kind or omega"
        return (
            f"{start}even the safest candidate's {found.notion} disparity, estimated at "
            f"{first.candidate.disparity:.3f}, may be as large as {first.disparity:.3f} at "
            f"tolerance {found.omega:g}. {more[0].upper()}{more[1:]}."
        )
    if not last.earns:
        return (
            f"{start}the boldest candidate may earn {-last.reward:.4f} a person less than what is "
            f"asked for. Type a smaller --reward-at-least than {found.reward_at_least:g}, or bring "
            "more people."
        )
    return (
        f"{start}those within {found.omega:g} may earn less than what is asked for. Type a smaller "
        f"--reward-at-least than {found.reward_at_least:g}, or a larger --omega."
    )


def _round(x: float) -> int:
    digits = max(len(str(int(x))) - 2, 0)
    return int(round(x, -digits))
