"""The cells of the study, as data: which world a log is drawn from and what the audit is told."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, Literal

import numpy as np

from sellf.fairness.notions import Notion

Law = Literal[
    "wide", "extreme", "low", "falling", "halves", "rule 2%", "rule 10%", "no overlap", "constant"
]
Score = Literal["true", "rough", "reversed", "noise", "constant", "oracle", "none"]
Order = Literal["drawn", "outcome", "group", "propensity"]
Knowledge = Literal["propensity", "nothing", "decisions", "trusted", "estimated"]

STUDIED: tuple[Notion, ...] = ("qualification", "accuracy", "opportunity", "demographic")
OTHERS: tuple[Notion, ...] = ("predictive-parity", "false-positive-rate", "equalized-odds")
REPRODUCED = ((907, 1380), (497, 1000), (497, 497), (5000, 5000))
"""Sizes at which intervals of earlier versions were seen to miss far too often."""


@dataclass(frozen=True)
class Cell:
    """One world, and what the audit knows of it."""

    kind: str
    """The question that the cell is part of; tables are by kind."""
    sizes: tuple[int, ...]
    """People in each group."""
    rates: tuple[float, ...] = (0.4, 0.5)
    """Each group's share of good outcomes."""
    law: Law = "wide"
    """How propensities depend on the feature."""
    shares: tuple[float, ...] = ()
    """Each group's propensity where it is constant."""
    score: Score = "rough"
    order: Order = "drawn"
    """How the rows are sorted."""
    knowledge: Knowledge = "propensity"
    """What the audit is given: the propensities, nothing about the rejected, decisions alone, every
    outcome, or features to estimate propensities from."""
    notions: tuple[Notion, ...] = STUDIED
    pending: tuple[float, ...] = ()
    """Each group's share of accepted people whose outcome is not known yet."""
    applications: int = 1
    """How often a person applies, on average."""
    looks: int = 1
    """How often an anytime audit looks while the log grows; 1 is an audit of the whole log."""
    number: int = -1
    """The place in the catalogue; it seeds the logs."""

    @property
    def finite_sample(self) -> bool:
        """Whether the promise is for every sample size."""
        return self.knowledge != "estimated"

    def __str__(self) -> str:
        few = " / ".join(f"{size:,}" for size in self.sizes[:2])
        sizes = few if len(self.sizes) == 2 else f"{len(self.sizes)} groups, {few}, ..."
        rates = " / ".join(f"{rate:g}" for rate in self.rates[:2])
        chances = " / ".join(f"{share:g}" for share in self.shares[:2])
        parts = [
            sizes,
            f"rates {rates}" if self.knowledge != "decisions" else "",
            f"accepted {chances}" if self.law == "constant" else self.law,
            f"score {self.score}" if self.knowledge == "propensity" else self.knowledge,
            f"sorted by {self.order}" if self.order != "drawn" else "",
            f"pending {' / '.join(map(str, self.pending))}" if self.pending else "",
            f"{self.applications} applications a person" if self.applications > 1 else "",
            f"{self.looks} looks" if self.looks > 1 else "",
        ]
        return ", ".join(part for part in parts if part)


def catalogue() -> list[Cell]:
    """Return all cells, numbered; new ones belong at the end, so that numbers keep their seeds."""
    kinds = (
        sizes, shares, random_sizes, base_rates, propensities, scores, orders, many_groups,
        without_propensities, pending, applicants, anytime, estimated, other_notions,
    )  # fmt: skip
    cells = [cell for kind in kinds for cell in kind()]
    return [replace(cell, number=number) for number, cell in enumerate(cells)]


def sizes() -> Iterator[Cell]:
    """Groups small and large, alike and unlike."""
    pairs = (
        *REPRODUCED, (30, 30), (30, 300), (50, 5000), (100, 100), (200, 200), (1000, 1000),
        (30, 40_000), (20_000, 20_000), (40_000, 40_000),
    )  # fmt: skip
    for pair, score in product(pairs, ("rough", "none")):
        yield Cell("sizes", pair, score=score)


def shares() -> Iterator[Cell]:
    """Shares of accepted people, which need no outcome."""
    accepted = ((0.1, 0.2), (0.15, 0.15), (0.5, 0.5), (0.3, 0.3), (0.01, 0.01), (0.99, 0.5))
    for pair, share in product((*REPRODUCED, (30, 30), (100, 250), (699, 699)), accepted):
        yield Cell(
            "shares", pair, law="constant", shares=share, score="none", knowledge="decisions",
            notions=("demographic",),
        )  # fmt: skip


def random_sizes() -> Iterator[Cell]:
    """Two hundred pairs of sizes from 30 to 40,000, with a world drawn for each."""
    rng = np.random.default_rng(14)
    laws: tuple[Law, ...] = ("wide", "low", "constant", "rule 10%")
    guesses: tuple[Score, ...] = ("rough", "none", "true")
    for number in range(200):
        first, second = np.exp(rng.uniform(np.log(30), np.log(40_000), 2)).round().astype(int)
        low, high = rng.choice([0.05, 0.1, 0.3, 0.5, 0.7, 0.9], 2)
        chances = tuple(float(chance) for chance in rng.choice([0.05, 0.15, 0.3, 0.5, 0.8], 2))
        law = laws[number % 4]
        yield Cell(
            "random sizes",
            (int(first), int(second)),
            rates=(float(low), float(high)),
            law=law,
            shares=chances if law == "constant" else (),
            score=guesses[number % 3],
        )


def base_rates() -> Iterator[Cell]:
    """Outcomes from one in a thousand to all but one, and groups that are opposites."""
    rates = (
        (0.001, 0.001), (0.001, 0.999), (0.01, 0.01), (0.05, 0.1), (0.1, 0.9), (0.3, 0.7),
        (0.5, 0.5), (0.9, 0.9), (0.999, 0.999),
    )  # fmt: skip
    pairs = ((300, 300), (2000, 2000), (1000, 700))
    for rate, pair, score in product(rates, pairs, ("rough", "none")):
        yield Cell("base rates", pair, rates=rate, score=score)
    for rate, pair in product(((0.001, 0.999), (0.1, 0.9), (0.3, 0.7)), pairs):
        yield Cell("base rates", pair, rates=rate, law="constant", shares=(0.5, 0.5), score="none")


def propensities() -> Iterator[Cell]:
    """From a coin to a rule that explores a little, or not at all."""
    laws: tuple[Law, ...] = ("low", "falling", "halves", "rule 2%", "rule 10%", "no overlap")
    pairs = ((200, 200), (2000, 2000), (907, 1380))
    for law, pair, score in product(laws, pairs, ("true", "none")):
        yield Cell("propensities", pair, law=law, score=score)
    for share, pair, score in product((0.02, 0.5), pairs, ("true", "none")):
        yield Cell("propensities", pair, law="constant", shares=(share, share), score=score)


def scores() -> Iterator[Cell]:
    """Scores that know everything, nothing, or the opposite."""
    kinds: tuple[Score, ...] = (
        "true", "rough", "reversed", "noise", "constant", "oracle", "none",
    )  # fmt: skip
    laws: tuple[Law, ...] = ("wide", "low")
    for score, pair, law in product(kinds, ((200, 200), (2000, 2000), (5000, 5000)), laws):
        yield Cell("scores", pair, score=score, law=law)


def orders() -> Iterator[Cell]:
    """Rows that come sorted; no interval may depend on it."""
    kinds: tuple[Order, ...] = ("outcome", "group", "propensity")
    for order, pair, score in product(kinds, ((200, 200), (497, 1000), (2000, 2000)), SOME):
        yield Cell("row orders", pair, order=order, score=score)


def many_groups() -> Iterator[Cell]:
    """Three to thirty groups, alike in size and not."""
    rates = (0.4, 0.5, 0.45, 0.6, 0.35, 0.5)
    for groups, size, score in product((3, 6, 30), (50, 400, 2000), ("true", "none")):
        mine = tuple(rates[group % 6] for group in range(groups))
        yield Cell("many groups", (size,) * groups, rates=mine, score=score)
    for groups in (3, 6, 30):
        mine = tuple(rates[group % 6] for group in range(groups))
        unlike = tuple(30 + 97 * group for group in range(groups))
        yield Cell("many groups", unlike, rates=mine, score="none")


def without_propensities() -> Iterator[Cell]:
    """Nothing about the rejected, or everything."""
    pairs = ((100, 100), (907, 1380), (5000, 5000))
    for pair in pairs:
        yield Cell("no propensities", pair, score="none", knowledge="nothing")
        yield Cell(
            "no propensities", pair, law="constant", shares=(0.9, 0.95), score="none",
            knowledge="nothing",
        )  # fmt: skip
    for pair, rates in product(pairs, ((0.4, 0.5), (0.001, 0.999), (0.1, 0.9))):
        yield Cell("every outcome known", pair, rates=rates, score="none", knowledge="trusted")


def pending() -> Iterator[Cell]:
    """Identical groups whose outcomes come in at different speeds."""
    for pair, score in product(((400, 400), (3000, 3000)), ("rough", "none")):
        yield Cell("pending outcomes", pair, rates=(0.5, 0.5), pending=(0.2, 0.6), score=score)


def applicants() -> Iterator[Cell]:
    """People who apply again and again, and are known by their number."""
    for often, score in product((3, 12), ("rough", "none")):
        yield Cell("repeat applicants", (400, 400), applications=often, score=score)


def anytime() -> Iterator[Cell]:
    """Audits that are repeated while the log grows: a miss at any look counts."""
    for pair, score in product(((400, 400), (4000, 3000)), ("rough", "none")):
        yield Cell("anytime", pair, score=score, looks=4)


def estimated() -> Iterator[Cell]:
    """Propensities that are estimated: a promise for long logs only."""
    # Acceptance is seen, so that nothing about it is asymptotic.
    hidden: tuple[Notion, ...] = tuple(notion for notion in STUDIED if notion != "demographic")
    for size, rates in product((200, 1000, 5000), ((0.4, 0.5), (0.01, 0.01), (0.1, 0.9))):
        yield Cell(
            "estimated", (size, size), rates=rates, score="none", knowledge="estimated",
            notions=hidden,
        )  # fmt: skip


def other_notions() -> Iterator[Cell]:
    """Hit rates, false-positive rates and equalized odds, in some of the worlds above."""
    of: dict[str, Any] = {"kind": "other notions", "notions": OTHERS}
    pairs = ((30, 300), (200, 200), (497, 1000), (907, 1380), (2000, 2000), (5000, 3100))
    for pair, score in product((*pairs, (40_000, 11_000)), SOME):
        yield Cell(**of, sizes=pair, score=score)
    for rates, score in product(((0.001, 0.999), (0.01, 0.01), (0.1, 0.9), (0.9, 0.9)), SOME):
        yield Cell(**of, sizes=(907, 1380), rates=rates, score=score)
    laws: tuple[Law, ...] = ("low", "halves", "rule 2%", "no overlap")
    for law, pair in product(laws, ((200, 200), (2000, 2000))):
        yield Cell(**of, sizes=pair, law=law, score="true")
    for knowledge in ("nothing", "trusted"):
        yield Cell(**of, sizes=(907, 1380), score="none", knowledge=knowledge)
    yield Cell(**of, sizes=(400, 400), rates=(0.5, 0.5), pending=(0.2, 0.6))
    yield Cell(**of, sizes=(400, 400), applications=3)
    yield Cell(**of, sizes=(400,) * 6, rates=(0.4, 0.5, 0.45, 0.6, 0.35, 0.5))
    yield Cell(**of, sizes=(1000, 700), looks=4)


SOME: tuple[Score, ...] = ("rough", "none")
