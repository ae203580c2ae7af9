"""Whether following "what would settle it" to the letter settles it: simulated logs, audited twice.

`python tools/settle.py` audits logs of six settings, follows the advice of those that are
undetermined (so many new applications of each group, and acceptance at random where it says so),
and audits the new applications alone. It prints how many are settled then, how many of these
rightly, and what was asked for.
"""

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import sellf

COLUMNS = {"group": "g", "decision": "a", "outcome": "y", "propensity": "p", "score": "f"}
Log = dict[str, np.ndarray]


@dataclass(frozen=True)
class Setting:
    """How people are and are decided on."""

    name: str
    notion: str
    sizes: tuple[int, ...]
    omega: float
    good: Callable[[int, np.ndarray], np.ndarray]
    """The chance of a good outcome of a group's people with feature x in [0, 1]."""
    accept: Callable[[int, np.ndarray], np.ndarray]
    """The chance of acceptance."""
    known: bool = True
    """Whether the log holds propensities and scores."""


def linear(start: float, slope: float, tilt: float) -> Callable[[int, np.ndarray], np.ndarray]:
    """Return a chance that is linear in x and lower by `tilt` for every next group."""
    return lambda group, x: np.clip(start - tilt * group + slope * x, 0.0, 1.0)


def rule(cuts: tuple[float, ...]) -> Callable[[int, np.ndarray], np.ndarray]:
    """Return decisions by a rule: above a group's cut, and never below."""
    return lambda group, x: (x > cuts[group]).astype(float)


SETTINGS = (
    Setting("acceptance", "demographic", (800, 600), 0.05, linear(0.3, 0.4, 0.0),
            linear(0.3, 0.3, 0.1)),
    Setting("qualification", "qualification", (1500, 1500), 0.1, linear(0.3, 0.5, 0.04),
            linear(0.2, 0.7, 0.05)),
    Setting("accuracy", "accuracy", (2000, 1000), 0.05, linear(0.2, 0.6, 0.0),
            linear(0.15, 0.8, 0.08)),
    Setting("opportunity", "opportunity", (1500, 1500), 0.1, linear(0.2, 0.6, 0.0),
            linear(0.2, 0.7, 0.17)),
    Setting("a rule without chance", "opportunity", (4000, 4000), 0.1, linear(0.2, 0.6, 0.0),
            rule((0.3, 0.6))),
    Setting("no propensities", "qualification", (3000, 2000), 0.1, linear(0.4, 0.4, 0.25),
            linear(0.5, 0.4, 0.1), known=False),
)  # fmt: skip


def draw(
    setting: Setting, sizes: tuple[int, ...], rng: np.random.Generator, share: float = 0.0
) -> Log:
    """Return a log; where nobody was ever accepted, a share is accepted at random, and recorded."""
    parts = []
    for group, size in enumerate(sizes):
        x = rng.random(size)
        good, p = setting.good(group, x), setting.accept(group, x)
        if setting.known:
            p = np.where(p < 0.01, share, p)
            a = rng.random(size) < p
        else:
            # The lender's own decisions are not random as far as the log tells; exploration is.
            a = rng.random(size) < p
            p = np.where(a, 1.0, share)
            a = a | (rng.random(size) < p)
        y = rng.random(size) < good
        parts.append((np.full(size, group), a * 1.0, np.where(a, y, np.nan), p, 0.5 * good + 0.25))
    return dict(
        zip("gaypf", (np.concatenate(part) for part in zip(*parts, strict=True)), strict=True)
    )


def audit(setting: Setting, log: Log, *, explored: bool = False) -> Any:
    """Audit a log of a setting."""
    columns: dict[str, Any] = dict(COLUMNS)
    if not setting.known:
        columns["score"] = None
        columns["propensity"] = "p" if explored else None
    return sellf.audit(log, **columns, notion=setting.notion, omega=setting.omega)  # pyright: ignore


def truth(setting: Setting) -> float:
    """Return the true disparity."""
    x = (np.arange(100_000) + 0.5) / 100_000
    values = []
    for group in range(len(setting.sizes)):
        good, p = setting.good(group, x), setting.accept(group, x)
        both = (good * p).mean()
        values.append({
            "demographic": p.mean(),
            "qualification": good.mean(),
            "accuracy": both + ((1 - good) * (1 - p)).mean(),
            "opportunity": both / good.mean(),
        }[setting.notion])  # fmt: skip
    return max(values) - min(values)


def follow(setting: Setting, logs: int, seed: int = 0) -> dict[str, Any]:
    """Return how often the advice was followed, and how often that settled the verdict."""
    asked, settled, right, refused, open_ = [], 0, 0, 0, 0
    for number in range(logs):
        rng = np.random.default_rng([seed, number])
        first = audit(setting, draw(setting, setting.sizes, rng))
        if first.verdict != "undetermined":
            continue
        open_ += 1
        if not first.needed.people:
            refused += 1
            continue
        share = first.needed.accept_share or 0.0
        sizes = tuple(
            first.needed.people.get(group, size) for group, size in enumerate(setting.sizes)
        )
        asked.append(sum(sizes))
        again = audit(setting, draw(setting, sizes, rng, share), explored=share > 0)
        settled += again.verdict != "undetermined"
        # Exploration changes who is accepted, and so the disparity itself: not judged then.
        if not share:
            right += again.verdict == ("fair" if truth(setting) <= setting.omega else "unfair")
    return {
        "setting": setting.name,
        "undetermined": open_,
        "not practicable": refused,
        "followed": len(asked),
        "settled": settled,
        "rightly": right if len(asked) and not setting.name.startswith(("a rule", "no ")) else "",
        "people, median": int(np.median(asked)) if asked else 0,
    }


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description="Follow what would settle it.")
    parser.add_argument("--logs", type=int, default=100)
    options = parser.parse_args()
    rows = [follow(setting, options.logs) for setting in SETTINGS]
    print("| " + " | ".join(rows[0]) + " |")
    print("| " + " | ".join("---" for _ in rows[0]) + " |")
    for row in rows:
        print("| " + " | ".join(str(value) for value in row.values()) + " |")


if __name__ == "__main__":
    main()
