"""A policy that was learned from a log: decides from columns, and is a folder without code."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args

import numpy as np

from sellf import files
from sellf.errors import InputError
from sellf.logs.names import Values
from sellf.logs.person import Floats
from sellf.offline.encoding import Encoding, from_dict
from sellf.offline.models import Linear, Model, Trees, from_arrays

FORMAT = 2
Kind: TypeAlias = Literal["logistic", "scorecard", "boosting"]
KINDS: tuple[Kind, ...] = get_args(Kind)
POINTS = 20.0
"""Points of a scorecard that double the odds."""
MOST_LOG_ODDS = 1e9
"""Of a model and its threshold. Points beyond would not be whole numbers any more."""
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
"""What policies of earlier versions do not say, and what it is then."""


@dataclass(frozen=True)
class LearnedPolicy:
    """Accepts whoever the model puts above a threshold, and everybody else with a small chance."""

    kind: Kind
    encoding: Encoding
    model: Model
    threshold: float
    """On the model's margin."""
    band: float = 0.0
    """Whoever is below the threshold by this or less is accepted with the chance `within`: of
    people who are alike some, drawn by lot, can be accepted."""
    within: float = 0.0
    follow: float = 1.0
    """With which chance the rule decides; else everybody is treated alike,"""
    otherwise: float = 0.0
    """accepted (1) or rejected (0)."""
    explore: float = 0.0
    """The smallest chance of acceptance: so that the next log shows everybody's outcomes."""
    card: str = ""
    """What it was learned from, and what is certified, for people to read."""
    facts: dict[str, Any] = field(default_factory=dict, compare=False)
    """The same as plain values."""

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that it decides from."""
        return self.encoding.names

    def margin(self, columns: Mapping[str, Values]) -> Floats:
        """Return how far above the threshold people are."""
        return self.model.margin(self.encoding.encode(columns)) - self.threshold

    def probability(self, columns: Mapping[str, Values]) -> Floats:
        """Return the chance of acceptance of each person.

        Args:
            columns: the features by name, one value a person: a mapping or a data frame.
        """
        margin = self.margin(columns)
        near = (margin > -self.band) & (margin <= 0)
        return self.chance(np.where(near, self.within, margin > 0))

    def chance(self, above: np.ndarray) -> Floats:
        """Return the chance of acceptance.

        Args:
            above: whether people are above the threshold, or the chance that they count as such.
        """
        mixed = self.follow * above + (1 - self.follow) * self.otherwise
        return np.maximum(mixed, self.explore)

    def decide(self, columns: Mapping[str, Values], seed: int | None = None) -> np.ndarray:
        """Return a decision for each person, 1 for accepted.

        Args:
            columns: as for `probability`.
            seed: of the chance that exploration needs.
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
            # Without edges the feature had one value, which gives no points.
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
        """The points that are needed to be accepted, of a scorecard."""
        if not isinstance(self.model, Linear):
            raise InputError(f"the policy is of kind {self.kind!r}: only a scorecard has points.")
        factor = POINTS / np.log(2)
        return int(np.ceil((self.threshold - self.model.coefficients[-1]) * factor))

    def marks(self) -> list[str]:
        """Return with how many points somebody is accepted, in words."""
        mark = self.pass_mark
        found = [f"accepted from {mark:+d} points on"]
        if self.within:
            first = mark - round(self.band * POINTS / np.log(2))
            some = f"{first:+d} points" if first == mark - 1 else f"{first:+d} to {mark - 1:+d}"
            found.append(f"of those with {some}, {self.within:.0%} are accepted, by lot")
        return found

    def __str__(self) -> str:
        title = f"{self.kind} policy on {', '.join(self.columns)}"
        if self.within:
            title += f"; accepts {self.within:.0%} of those just below its mark, by lot"
        if self.follow < 1:
            rest = "accepts" if self.otherwise else "rejects"
            title += f"; follows its rule with chance {self.follow:.0%}, else {rest}"
        if self.explore:
            title += f"; accepts everybody with a chance of at least {self.explore:.1%}"
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
    """Return a policy that was saved; nothing in the folder is run."""
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
    # Not `any(x > ...)`: that would let pass what is no number.
    reasonable = all(abs(x) <= MOST_LOG_ODDS for x in sizes) and numbers["band"] >= 0
    if not fits or content["kind"] not in KINDS or not reasonable:
        raise InputError(f"{folder}: model and features do not fit each other; it is damaged.")
    if not all(0 <= x <= 1 for name, x in numbers.items() if name != "band"):
        raise InputError(f"{folder}: chances of the policy are not between 0 and 1; it is damaged.")
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
    """Return the card, which states what is certified, if it is the one that was written."""
    if not path.exists():
        raise InputError(f"{path} is missing: copy the policy's whole folder.")
    content = files.read(path, 2**20)
    if _digest(content) != expected:
        raise InputError(f"{path} has been changed since the policy was saved: restore it.")
    return content.decode()


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _number(value: Any) -> float:
    """Return a number that a file holds; what is no number, or too large for one, is NaN."""
    try:
        return float(value) if isinstance(value, int | float) else float("nan")
    except OverflowError:
        return float("nan")
