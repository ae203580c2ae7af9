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

from sellf.audit.interval import Interval
from sellf.errors import InputError
from sellf.fairness.checks import chance_of_error, number, one_of, whole
from sellf.fairness.notions import Notion, define
from sellf.fairness.tables import Table
from sellf.logs.columns import names_of
from sellf.logs.limits import Limits
from sellf.logs.names import Values
from sellf.logs.person import Floats
from sellf.offline.bounds import Part
from sellf.offline.card import card_of
from sellf.offline.certify import Tested, test
from sellf.offline.history import History, read, reading_options
from sellf.offline.learn import (
    Lesson,
    Wish,
    as_chance,
    candidates,
    describe,
)
from sellf.offline.lines import reward
from sellf.offline.longterm import LongTerm, long_term
from sellf.offline.policy import KINDS, Kind, LearnedPolicy
from sellf.offline.result import WhatIf
from sellf.offline.segments import Segment, segments
from sellf.offline.sentences import explored, promise, refusal, unusual
from sellf.offline.whatif import NOW, PROPOSED, Question, compared, interval, negative

LEARNED = 0.3
"""The share of people that policies are learned from,"""
MOST_LEARNED = 150_000
"""and how many at most: certifying takes more people than learning."""
MOST_LOOKED = 8_000
"""Rows of them that settle beforehand how the others are weighed."""
OF_GROUPS = "group"
"""The column under which a policy that may see the group takes its name."""
FEWEST = 400
"""People that a log needs at least."""


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
    long_term: LongTerm | None = None
    """What it comes to over several decisions about the same people, by a model."""
    segments: tuple[Segment, ...] = ()
    """Who would be accepted, of the people that were not learned from."""
    price: Interval | None = None
    """What exploration costs a person: the reward without it less that with it."""

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
        if self.price is not None:
            parts.append(explored(self))
        if self.long_term is not None:
            parts.append(str(self.long_term))
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
            "segments": [segment.to_dict() for segment in self.segments],
            "exploration_costs": None if self.price is None else self.price._asdict(),
            "long_term": None if self.long_term is None else self.long_term.to_dict(),
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
    horizon: int | None = None,
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
        horizon: over how many decisions about everybody the policy is followed in a world that
            is fitted to the log, which needs person and time; None: not at all. What that comes to
            is a model's answer, and not part of the certificate.
        delta: the chance with which each of the two promises may fail.
        limits: how large a log may be.
        progress: called with the steps done, and all.
        options: what the log's columns mean and how it is read, as for `sellf.audit`.
    """
    delta = chance_of_error(delta)
    omega = number("omega", omega, low=0, high=1, low_open=True)
    cost = number("cost", cost, low=0, high=1)
    explore = number("explore", explore, low=0, high=0.5)
    share = number("reward_at_least", reward_at_least, low=0, high=2)
    one_of("kind", kind, KINDS)
    if horizon is not None:
        horizon = whole("horizon", horizon, low=1, high=1000)
        if not (options.get("person") and options.get("time")):
            raise InputError(
                "horizon needs to know who was decided about when: name the columns with --person "
                "and --time."
            )
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
    path, model, encoding, guess = candidates(_lesson(history, columns, learn), wish)
    others = {name: values[certify] for name, values in columns.items()}
    guess = _placed(learn, guess, certify, as_chance(model, encoding, others), history.rows.count)
    rest, kept = _others(history, learn, certify, guess)
    others = {name: values[kept] for name, values in columns.items()}
    tested = test(path, rest, others, rate, cost, omega, delta, share)
    found = Improvement(
        policy=None,
        notion=notion,
        omega=omega,
        delta=delta,
        cost=cost,
        reward_at_least=share,
        tested=tuple(tested),
        chosen=max((k for k, one in enumerate(tested) if one.fair and one.earns), default=None),
        people=(history.everyone.people - rest.people, rest.people),
        whatif=None,
        sentence="",
        finite_sample=not history.estimated,
        warnings=(*history.warnings, *((history.void,) if history.void else ())),
    )
    if horizon is not None and found.chosen is not None:
        chance = tested[found.chosen].candidate.policy.probability(columns)
        state = {name: columns[name] for name in names}
        over = long_term(history, state, guess, chance, rate, cost, horizon)
        found = replace(found, long_term=over)
    return _with_policy(found, rest, others)


def _columns(history: History, names: Sequence[str], use_group: bool) -> dict[str, Values]:
    """Return the columns that a policy decides from, the group among them if it may see it."""
    found = {name: history.extra[name] for name in names}
    if not use_group:
        return found
    group = np.array([str(n) for n in history.rows.names])[history.rows.codes]
    # A feature of that name may stay if it is the group itself.
    if any(str(x) != y for x, y in zip(found.get(OF_GROUPS, ()), group, strict=False)):
        raise InputError(
            f"features names a column {OF_GROUPS!r}, and with use_group the policy takes the names "
            "of groups under that name: rename the column."
        )
    return found | {OF_GROUPS: group}


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
        return replace(found, sentence=refusal(found, rest.void))
    policy = found.tested[found.chosen].candidate.policy
    chances = {NOW: rest.current, PROPOSED: policy.probability(columns)}
    question = Question(rest, chances, found.delta)
    notions = [define(found.notion)]
    beside = compared(question, "the new policy", notions, found.cost, found.omega)
    found = replace(found, whatif=beside)
    found = replace(found, sentence=promise(found), warnings=(*found.warnings, *unusual(found)))
    counts = slice(None) if rest.looked is None else ~rest.looked
    now = rest.person.accepted if rest.current is None else rest.current
    found = replace(
        found,
        segments=segments(
            {name: values[counts] for name, values in columns.items() if name in rest.extra},
            rest.rows.codes[counts],
            list(rest.rows.names),
            now[counts],
            policy.probability(columns)[counts],
        ),
        price=_price(rest, policy, columns, found) if policy.explore else None,
    )
    card = card_of(found, policy)
    return replace(found, policy=describe(policy, {"promise": found.sentence}, card))


def _price(
    rest: History, policy: LearnedPolicy, columns: dict[str, Values], found: Improvement
) -> Interval:
    """Return what a policy would earn more without exploration."""
    both = (replace(policy, explore=0.0), policy)
    parts = [
        Part(
            1.0, rest.everyone, reward(one.probability(columns), found.cost, rest.rows.count), name
        )
        for one, name in zip(both, ("without", "with"), strict=True)
    ]
    return interval([parts[0], negative(parts[1])], found.delta, -1.0, 1.0)


def _split(history: History) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the rows to learn from and those to certify on; all rows of a person go together."""
    units = history.everyone.units
    rng = np.random.default_rng([history.seed, history.person.digest(), 21])
    share = min(LEARNED, MOST_LEARNED / history.everyone.people)
    chosen = rng.random(history.everyone.people) < share
    return np.flatnonzero(chosen[units]), np.flatnonzero(~chosen[units])


def _placed(
    first: NDArray[np.intp],
    guess: Floats,
    second: NDArray[np.intp],
    other: Floats,
    rows: int,
) -> Floats:
    """Return the predictions of both parts, row by row."""
    found = np.zeros(rows)
    found[first], found[second] = guess, other
    return found


def _others(
    history: History, learn: NDArray[np.intp], certify: NDArray[np.intp], guess: Floats
) -> tuple[History, NDArray[np.intp]]:
    """Return the people to certify on, with predictions that others were learned from.

    Some of those others stay in as a pilot: from them it is settled how rows are weighed.

    Args:
        history: everybody.
        learn: rows that were learned from.
        certify: rows that were not.
        guess: predictions for all rows.
    """
    weighs = not history.estimated and history.person.propensity is not None
    looked = _first_people(history.everyone.units, learn, MOST_LOOKED) if weighs else learn[:0]
    rows = np.sort(np.concatenate([certify, looked]))
    part = history.rows.take(rows)
    if weighs:
        part = replace(part, person=part.person._replace(prediction=guess[rows]))
    found = replace(
        history,
        rows=part,
        extra={n: v[rows] for n, v in history.extra.items()},
        looked=np.isin(rows, looked, assume_unique=True) if weighs else None,
    )
    return found, rows


def _first_people(units: NDArray[np.intp], rows: NDArray[np.intp], most: int) -> NDArray[np.intp]:
    """Return so many of the rows, all those of a person or none."""
    if len(rows) <= most:
        return rows
    return rows[units[rows] < units[rows[most]]]
