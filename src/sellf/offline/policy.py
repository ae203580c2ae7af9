"""A policy learned from a log, which decides from columns and is saved as a folder without code."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args

import numpy as np

from sellf import files
from sellf.errors import InputError
from sellf.fairness.checks import short
from sellf.logs.names import Values
from sellf.logs.person import Floats
from sellf.offline.encoding import Encoding, from_dict
from sellf.offline.models import Linear, Model, Trees, from_arrays, margins

FORMAT = 2
Kind: TypeAlias = Literal["logistic", "scorecard", "boosting"]
KINDS: tuple[Kind, ...] = get_args(Kind)
POINTS = 20.0
"""Number of scorecard points that double the odds."""
MOST_LOG_ODDS = 1e9
"""Largest log odds of a model and its threshold; larger points are no longer exact integers."""
CHANCES = ("follow", "otherwise", "explore")
NEEDED = {
    "kind": str,
    "features": list,
    "threshold": float,
    "card": str,
    **dict.fromkeys(CHANCES, float),
}
FILES = ("policy.json", "model.safetensors", "card.md")
LATER = {"band": 0.0, "within": 0.0}
"""Fields that policies saved by earlier versions lack, with their defaults."""


@dataclass(frozen=True)
class LearnedPolicy:
    """A policy that accepts above a threshold of a model, with optional randomization."""

    kind: Kind
    encoding: Encoding
    model: Model
    threshold: float
    """Threshold on the model's margin."""
    band: float = 0.0
    """People within this distance below the threshold are accepted with probability `within`, so a
    part of the people with the same margin can be accepted at random."""
    within: float = 0.0
    follow: float = 1.0
    """Probability with which the rule decides; otherwise `otherwise` decides for everybody."""
    otherwise: float = 0.0
    """Decision where the rule is not followed: accept (1) or reject (0)."""
    explore: float = 0.0
    """Smallest probability of acceptance, which keeps the next log informative about everybody."""
    card: str = ""
    """Human-readable description of what the policy was learned from and what is certified."""
    facts: dict[str, Any] = field(default_factory=dict, compare=False)
    """Facts about the policy as plain values."""

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that the policy decides from."""
        return self.encoding.names

    def margin(self, columns: Mapping[str, Values]) -> Floats:
        """Return the margin of each person above the threshold."""
        return margins(self.model, self.encoding, columns) - self.threshold

    def probability(self, columns: Mapping[str, Values]) -> Floats:
        """Return the probability of acceptance of each person.

        Args:
            columns: the features by name, one value per person: a mapping or a data frame.
        """
        margin = self.margin(columns)
        near = (margin > -self.band) & (margin <= 0)
        return self.chance(np.where(near, self.within, margin > 0))

    def chance(self, above: np.ndarray) -> Floats:
        """Return the probability of acceptance.

        Args:
            above: whether people are above the threshold, or the probability that they count as
                such.
        """
        mixed = self.follow * above + (1 - self.follow) * self.otherwise
        return np.maximum(mixed, self.explore)

    def decide(self, columns: Mapping[str, Values], seed: int | None = None) -> np.ndarray:
        """Return a decision for each person, 1 for accepted.

        Args:
            columns: as for `probability`.
            seed: seed of the random draws.
        """
        chance = self.probability(columns)
        return (np.random.default_rng(seed).random(len(chance)) < chance).astype(np.int64)

    __call__ = probability

    def points(self) -> list[tuple[str, str, int]]:
        """Return a scorecard's table: feature, value and points."""
        if self.kind != "scorecard" or not isinstance(self.model, Linear):
            raise InputError(f"the policy is of kind {self.kind!r}: only a scorecard has points.")
        factor = POINTS / np.log(2)
        rows: list[tuple[str, str, int]] = []
        place = 0
        for feature in self.encoding.features:
            own = self.model.coefficients[place : place + feature.width] * factor
            place += feature.width
            steps = np.round(own).astype(int)
            if not steps.any():
                continue
            if feature.levels:
                rows += [
                    (feature.name, level, int(p))
                    for level, p in zip(feature.levels, steps, strict=False)
                ]
                rows.append((feature.name, "other", int(steps[-1])))
                continue
            edges = (-np.inf, *feature.edges, np.inf)
            # A feature without edges had a single value, which gives no points.
            total = np.concatenate([[0], np.cumsum(steps[: len(feature.edges)])])
            merged: list[tuple[float, float, int]] = []
            for low, high, points in zip(edges[:-1], edges[1:], total, strict=True):
                if merged and merged[-1][2] == points:
                    merged[-1] = (merged[-1][0], high, int(points))
                else:
                    merged.append((low, high, int(points)))
            rows += [(feature.name, _range(low, high), points) for low, high, points in merged]
            if steps[-1]:
                rows.append((feature.name, "missing", int(steps[-1])))
        return rows

    @property
    def pass_mark(self) -> int:
        """Number of points that a scorecard requires for acceptance."""
        if not isinstance(self.model, Linear):
            raise InputError(f"the policy is of kind {self.kind!r}: only a scorecard has points.")
        factor = POINTS / np.log(2)
        return int(np.ceil((self.threshold - self.model.coefficients[-1]) * factor))

    def marks(self) -> list[str]:
        """Return the number of points required for acceptance, in words."""
        mark = self.pass_mark
        found = [f"accepted from {mark:+d} points on"]
        if self.within:
            first = mark - round(self.band * POINTS / np.log(2))
            some = f"{first:+d} points" if first == mark - 1 else f"{first:+d} to {mark - 1:+d}"
            found.append(f"of those with {some}, {self.within:.0%} are accepted at random")
        return found

    def __str__(self) -> str:
        title = f"{self.kind} policy on {', '.join(self.columns)}"
        if self.within:
            title += f"; accepts {self.within:.0%} of those just below its mark, at random"
        if self.follow < 1:
            rest = "accepts" if self.otherwise else "rejects"
            title += f"; follows its rule with probability {self.follow:.0%}, otherwise {rest}"
        if self.explore:
            title += f"; accepts everybody with a probability of at least {self.explore:.1%}"
        if self.kind != "scorecard":
            return title
        table = self.points()
        widths = [max((len(str(row[k])) for row in table), default=0) for k in (0, 1)]
        lines = [f"{a.ljust(widths[0])}  {b.ljust(widths[1])}  {p:+5d}" for a, b, p in table]
        return "\n".join([title, *lines, *self.marks()])

    def save(self, path: str | Path) -> Path:
        """Write the policy into a new folder; `sellf.load_policy` reads it."""
        content = {
            "format": FORMAT,
            "kind": self.kind,
            "features": self.encoding.to_dict(),
            "threshold": float(self.threshold),
            "follow": float(self.follow),
            "otherwise": float(self.otherwise),
            "explore": float(self.explore),
            "band": float(self.band),
            "within": float(self.within),
            "facts": self.facts,
            "card": _digest(self.card.encode()),
        }
        return files.write_folder(
            Path(path),
            {
                "policy.json": files.sealed_json(content),
                "model.safetensors": files.tensors_to_bytes(self.model.arrays()),
                "card.md": self.card.encode(),
            },
        )


def _range(low: float, high: float) -> str:
    if low == -np.inf:
        return "any" if high == np.inf else f"below {high:g}"
    return f"{low:g} or more" if high == np.inf else f"{low:g} to below {high:g}"


def load_policy(path: str | Path) -> LearnedPolicy:
    """Load a saved policy; no code in the folder is executed."""
    if not isinstance(path, str | Path):
        raise InputError(f"path is {short(path)}: give the folder of a policy.")
    folder = Path(path)
    files.check_own((folder / name for name in FILES), "a policy")
    content = files.read_json(folder / "policy.json", FORMAT, NEEDED)
    encoding = from_dict(content["features"])
    model = from_arrays(files.read_tensors(folder / "model.safetensors", finite=True))
    width = sum(feature.width for feature in encoding.features)
    fits = (
        model.coefficients.shape == (width + 1,)
        if isinstance(model, Linear)
        else isinstance(model, Trees) and model.feature.max(initial=-1) < width
    )
    numbers = {name: _number(content.get(name, value)) for name, value in LATER.items()}
    numbers |= {name: _number(content[name]) for name in CHANCES}
    sizes = [_number(content["threshold"]), numbers["band"]]
    if isinstance(model, Linear):
        sizes += [float(np.abs(model.coefficients).max(initial=0.0))]
    # Not `any(x > ...)`, which NaN would pass.
    reasonable = all(abs(x) <= MOST_LOG_ODDS for x in sizes) and numbers["band"] >= 0
    if not fits or content["kind"] not in KINDS or not reasonable:
        raise InputError(f"{folder}: model and features do not fit each other; it is damaged.")
    if not all(0 <= x <= 1 for name, x in numbers.items() if name != "band"):
        raise InputError(
            f"{folder}: probabilities of the policy are not between 0 and 1; it is damaged."
        )
    card = _card(folder / "card.md", content["card"])
    return LearnedPolicy(
        content["kind"],
        encoding,
        model,
        sizes[0],
        card=card,
        facts=content.get("facts", {}),
        **numbers,
    )


def _card(path: Path, expected: str) -> str:
    """Return the card, which states what is certified; refuse a card that has been changed."""
    if not path.exists():
        raise InputError(f"{path} is missing: copy the policy's whole folder.")
    content = files.read(path, 2**20)
    if _digest(content) != expected:
        raise InputError(f"{path} has been changed since the policy was saved: restore it.")
    return content.decode()


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _number(value: Any) -> float:
    """Return a number from a file; NaN for values that are no numbers or too large."""
    try:
        return float(value) if isinstance(value, int | float) else float("nan")
    except OverflowError:
        return float("nan")
