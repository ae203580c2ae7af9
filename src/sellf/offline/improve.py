"""`sellf.improve`: learn a policy from a log and certify its disparity and reward.

The people of the log are split. Candidates are learned from one part; on the other part, their
disparity and reward are bounded by bounds that hold at every sample size. Candidates are tested in
an order that is fixed beforehand: from the safest to the boldest for the disparity, from the
boldest to the safest for the reward, each up to the first failure. With probability 1 - delta no
candidate that passes exceeds the tolerance, and with probability 1 - delta none earns too little
(fixed-sequence testing, which needs no correction for the number of candidates).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
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
    Candidate,
    Lesson,
    Wish,
    as_chance,
    candidates,
    describe,
)
from sellf.offline.lines import Chance, reward
from sellf.offline.longterm import LongTerm, long_term
from sellf.offline.policy import KINDS, Kind, LearnedPolicy
from sellf.offline.result import WhatIf
from sellf.offline.segments import Segment, segments
from sellf.offline.sentences import explored, promise, refusal, unusual
from sellf.offline.whatif import NOW, PROPOSED, Question, compared, interval, negative

LEARNED = 0.3
"""Share of people used for learning policies."""
MOST_LEARNED = 150_000
"""Upper limit on the number of people used for learning; certification needs more people."""
MOST_LOOKED = 8_000
"""Upper limit on the rows of these people that serve as the pilot for certification."""
OF_GROUPS = "group"
"""Column of group names for a policy that may use the group."""
FEWEST = 400
"""Smallest number of people that a log must have."""


@dataclass(frozen=True)
class Improvement(Table):
    """A certified policy, or the reason why there is none."""

    policy: LearnedPolicy | None
    notion: Notion
    omega: float
    delta: float
    cost: float
    reward_at_least: float
    tested: tuple[Tested, ...]
    chosen: int | None
    people: tuple[int, int]
    """Number of people used for learning, and number used for certification."""
    whatif: WhatIf | None
    """The chosen policy compared with the current one, on the held-out people."""
    sentence: str
    finite_sample: bool
    warnings: tuple[str, ...]
    long_term: LongTerm | None = None
    """Model-based figures over several decisions about the same people."""
    segments: tuple[Segment, ...] = ()
    """Acceptance by group and feature, among the held-out people."""
    price: Interval | None = None
    """Cost of exploration per person: the reward without it minus the reward with it."""

    @property
    def certified(self) -> bool:
        """Whether a policy is certified."""
        return self.policy is not None

    def _title(self) -> str:
        return self.sentence

    def _table(self) -> dict[str, list[Any]]:
        rows = self.tested
        return {
            "candidate": [str(k + 1) for k in range(len(rows))],
            "followed": [one.candidate.policy.follow for one in rows],
            "margin": [one.candidate.margin for one in rows],
            "estimated disparity": [one.candidate.disparity for one in rows],
            "estimated reward": [one.candidate.reward for one in rows],
            "bound": [one.disparity for one in rows],
            "reward above floor by": [one.reward for one in rows],
            "within omega": ["yes" if one.fair else "no" for one in rows],
            "earns enough": ["yes" if one.earns else "no" for one in rows],
            "chosen": ["<-" if k == self.chosen else "" for k in range(len(rows))],
        }

    def _printed(self) -> dict[str, list[Any]]:
        # Those after the first that is not within omega are only in the table.
        last = sum(one.disparity is not None for one in self.tested)
        return {name: column[:last] for name, column in self._table().items()}

    def __str__(self) -> str:
        # The candidates explain why none is certified; otherwise the chosen one matters.
        parts = [super().__str__()]
        if self.chosen is not None:
            place, count = self.chosen + 1, len(self.tested)
            parts = [self._title(), f"It is candidate {place} of {count}, from safest to boldest."]
            bound = self.tested[self.chosen].disparity
            if bound is not None:
                parts[1] += (
                    f" The bound on its disparity is {bound:.3f}; it is one-sided, the intervals "
                    "below are two-sided."
                )
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
        """Return all results as plain values."""
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
    """Learn a policy with a certified disparity and reward from a log of decisions.

    Args:
        log: as for `sellf.audit`.
        features: the columns that the policy decides from.
        cost: cost of accepting a person, as a share of what a good outcome pays.
        omega: the tolerated disparity.
        notion: the measure of fairness.
        kind: "logistic", "scorecard" (integer points, monotone) or "boosting".
        use_group: whether the policy may use the group; otherwise the group only serves to measure
            the disparity.
        explore: the smallest probability of acceptance, such that a policy can be learned from the
            next log.
        reward_at_least: the share of the current policy's reward that must be kept.
        horizon: the number of decisions about everybody over which the policy is simulated in a
            world fitted to the log, which requires person and time; None: no simulation. The
            result is model-based and not part of the certificate.
        delta: probability with which each of the two guarantees may fail.
        limits: limits on the size of the log.
        progress: called with the number of steps done and their total number.
        options: meaning of the log's columns and how it is read, as for `sellf.audit`.
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
                "horizon needs the person and the time of every decision: name the columns with "
                "--person and --time."
            )
    rate = define(notion).alone
    names = names_of(features, "features")
    if not names:
        raise InputError("features is empty: name the columns that the policy decides from.")
    history = read(log, reading_options({"features": (), **options}), names, limits)
    if history.everyone.people < FEWEST:
        raise InputError(
            f"the log has {history.everyone.people:,} people: to learn a policy and to certify it, "
            f"give a log of at least {FEWEST} people."
        )
    parts = _split(history)
    wish = Wish(
        rate,
        cost,
        omega,
        delta,
        kind,
        use_group,
        explore,
        len(parts[1]),
        progress or (lambda done, of: None),
    )
    learned = _learned(history, names, parts, wish, horizon)
    # Of a large log, everybody's rows need much memory beside those of the held-out people.
    del history
    tested = test(learned.path, learned.rest, learned.columns, rate, cost, omega, delta, share)
    rest = replace(learned.rest)  # without the samples that the tests have made
    learned = replace(learned, rest=rest)
    void = (rest.void,) if rest.void else ()
    found = Improvement(
        policy=None,
        notion=notion,
        omega=omega,
        delta=delta,
        cost=cost,
        reward_at_least=share,
        tested=tuple(tested),
        chosen=max((k for k, one in enumerate(tested) if one.fair and one.earns), default=None),
        people=learned.people,
        whatif=None,
        sentence="",
        finite_sample=not rest.estimated,
        warnings=(*rest.warnings, *_of_groups(names, options, use_group), *void),
    )
    if learned.simulated is not None and found.chosen is not None:
        policy = tested[found.chosen].candidate.policy
        found = replace(found, long_term=learned.simulated(policy))
    return _with_policy(found, learned)


@dataclass(frozen=True)
class _Learned:
    """What was learned from one part of a log, and the other part."""

    path: list[Candidate]
    rest: History
    """The held-out people, with those of the others who serve as their pilot."""
    columns: dict[str, Values]
    """The columns that policies decide from, of the same rows."""
    people: tuple[int, int]
    """Number of people used for learning, and number held out."""
    simulated: Callable[[LearnedPolicy], LongTerm] | None
    """Returns the long-term effect of a policy on everybody, if it is wanted."""


def _learned(
    history: History,
    names: Sequence[str],
    parts: tuple[NDArray[np.intp], NDArray[np.intp]],
    wish: Wish,
    horizon: int | None,
) -> _Learned:
    """Return candidates learned from some of the people, with the others.

    Args:
        history: everybody.
        names: the features.
        parts: the rows to learn from, and those to certify on.
        wish: the requirements on a policy.
        horizon: number of decisions over which a policy is simulated; None: no simulation.
    """
    learn, certify = parts
    columns = _columns(history, names, wish.use_group)
    path, model, encoding, guess = candidates(_lesson(history, columns, learn), wish)
    others = {name: values[certify] for name, values in columns.items()}
    guess = _placed(learn, guess, certify, as_chance(model, encoding, others), history.rows.count)
    rest, kept = _others(history, learn, certify, guess)
    simulated = None
    if horizon is not None:
        simulated = partial(_simulated, history, columns, names, guess, wish, horizon)
    return _Learned(
        path,
        rest,
        {name: values[kept] for name, values in columns.items()},
        (history.everyone.people - rest.people, rest.people),
        simulated,
    )


def _simulated(
    history: History,
    columns: dict[str, Values],
    names: Sequence[str],
    guess: Floats,
    wish: Wish,
    horizon: int,
    policy: LearnedPolicy,
) -> LongTerm:
    """Return the effect of a policy over several decisions about everybody."""
    state = {name: columns[name] for name in names}
    chance = policy.probability(columns)
    return long_term(history, state, guess, chance, wish.rate, wish.cost, horizon)


def _of_groups(names: Sequence[str], options: dict[str, Any], use_group: bool) -> list[str]:
    """Return a warning if a policy that may not use the group decides from its columns."""
    named = [name for name in names_of(options["group"], "group") if name in names]
    if use_group or not named:
        return []
    return [
        f"the policy decides from the group, since features names {', '.join(named)}: leave it out "
        "for a policy that does not."
    ]


def _columns(history: History, names: Sequence[str], use_group: bool) -> dict[str, Values]:
    """Return the columns that a policy decides from, including the group if it may use it."""
    found = {name: history.extra[name] for name in names}
    if not use_group:
        return found
    group = np.array([str(n) for n in history.rows.names])[history.rows.codes]
    # A feature of that name is allowed if it is the group itself.
    if any(str(x) != y for x, y in zip(found.get(OF_GROUPS, ()), group, strict=False)):
        raise InputError(
            f"features names a column {OF_GROUPS!r}, which is reserved for the names of groups "
            "with use_group: rename the column."
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


def _with_policy(found: Improvement, learned: _Learned) -> Improvement:
    """Return the result with the chosen policy, its effects and its card, or with the refusal."""
    rest, columns = learned.rest, learned.columns
    if found.chosen is None:
        return replace(found, sentence=refusal(found, rest.void))
    policy = found.tested[found.chosen].candidate.policy
    proposed = policy.probability(columns)
    found = replace(found, segments=_segments(rest, proposed, columns))
    question = Question(rest, {NOW: rest.current, PROPOSED: proposed}, found.delta)
    notions = [define(found.notion)]
    beside = compared(question, "the new policy", notions, found.cost, found.omega)
    found = replace(found, whatif=beside)
    found = replace(found, sentence=promise(found), warnings=(*found.warnings, *unusual(found)))
    if policy.explore:
        found = replace(found, price=_price(rest, policy, columns, found))
    card = card_of(found, policy)
    return replace(found, policy=describe(policy, {"promise": found.sentence}, card))


def _segments(rest: History, proposed: Floats, columns: dict[str, Values]) -> tuple[Segment, ...]:
    counts = slice(None) if rest.looked is None else ~rest.looked
    now = rest.person.accepted if rest.current is None else rest.current
    return segments(
        {name: values[counts] for name, values in columns.items() if name in rest.extra},
        rest.rows.codes[counts],
        list(rest.rows.names),
        now[counts],
        proposed[counts],
    )


def _price(
    rest: History, policy: LearnedPolicy, columns: dict[str, Values], found: Improvement
) -> Interval:
    """Return the additional reward of a policy without exploration."""
    both = (replace(policy, explore=0.0), policy)
    parts = [
        Part(1.0, rest.everyone, reward(Chance(one.probability(columns)), found.cost), name)
        for one, name in zip(both, ("without", "with"), strict=True)
    ]
    return interval([parts[0], negative(parts[1])], found.delta, -1.0, 1.0)


def _split(history: History) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the rows for learning and those for certification, split by person."""
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
    """Return the predictions of both parts in the order of the rows."""
    found = np.zeros(rows)
    found[first], found[second] = guess, other
    return found


def _others(
    history: History, learn: NDArray[np.intp], certify: NDArray[np.intp], guess: Floats
) -> tuple[History, NDArray[np.intp]]:
    """Return the history for certification, with predictions learned from other people.

    Some of the people used for learning are kept as a pilot, which determines how rows are
    weighted.

    Args:
        history: everybody.
        learn: rows used for learning.
        certify: rows held out for certification.
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
    """Return the first `most` rows at most, with all rows of a person or none."""
    if len(rows) <= most:
        return rows
    return rows[units[rows] < units[rows[most]]]
