"""Try to make sellf-plan certify what is not true, in random worlds that are hard for it.

    python tools/plan_attack.py FOLDER                   # 40 trainings of each attack; 10 minutes
    python tools/plan_attack.py FOLDER --seeds 10
    python tools/plan_attack.py FOLDER --table           # print the table of what is there

Every training has a world of its own, made by `sellf.world_from_frame` from its seed, and goes
through `sellf.train`. delta is mostly larger than by default: a bound that fails too often is found
with fewer trainings. Counted is what `plan_figures.py` counts; what is there is not trained again.
"""

import argparse
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import sellf
from plan_figures import Case, below, finish, read

LEVELS = 4
ROWS = 1000


@dataclass(frozen=True)
class Attack:
    """A kind of worlds, and how it is trained there."""

    says: str
    notion: str
    omega: float
    delta: float
    shares: tuple[float, ...] = (0.5, 0.5)
    labels: str = "random"
    steps: int = 4_096
    rollout: int = 256
    population: int = 1_000
    horizon: int = 1_024
    changes: str = "steps"
    settings: dict[str, Any] = field(default_factory=dict)


ATTACKS = {
    "rare": Attack("3 % are of one group", "opportunity", 0.2, 0.2, (0.97, 0.03)),
    "reversed": Attack(
        "what is good in one group is bad in the other", "accuracy", 0.2, 0.2, labels="reversed"
    ),
    "few": Attack("1,024 decisions", "opportunity", 0.4, 0.3, steps=1_024, rollout=128),
    "small": Attack("a small omega", "accuracy", 0.02, 0.2, labels="extreme", steps=8_192),
    "large": Attack("a large omega, two rates", "equalized-odds", 0.5, 0.3),
    "three": Attack(
        "three groups, among the accepted", "predictive-parity", 0.4, 0.3, (0.6, 0.3, 0.1)
    ),
    "extreme": Attack(
        "outcomes nearly certain", "false-positive-rate", 0.3, 0.3, labels="extreme"
    ),
    "turning": Attack(
        "50 people, whom an acceptance makes the opposite", "opportunity", 0.3, 0.3,
        population=50, changes="turns",
    ),
    "blind": Attack(
        "hardly any exploration", "opportunity", 0.4, 0.3,
        settings={"floor": 0.001, "first": 0.1, "room": 1.0},
    ),
    "late": Attack(
        "the proof begins with the second rollout", "accuracy", 0.2, 0.3, (0.8, 0.2),
        settings={"learn_share": 0.01, "room": 0.9},
    ),
}  # fmt: skip


def world_of(attack: Attack, seed: int) -> Any:
    """Return a random world of an attack."""
    draw, groups = np.random.default_rng([18, seed]), len(attack.shares)
    alpha = draw.uniform(0.05, 0.95, (groups, LEVELS))
    if attack.labels == "reversed":
        alpha[1:] = 1 - alpha[0]
    if attack.labels == "extreme":
        alpha = np.where(alpha < 0.5, 0.02, 0.98) + draw.uniform(-0.015, 0.015, alpha.shape)
    people = [max(LEVELS, round(ROWS * share)) for share in attack.shares]
    # Everyone there can be is there at least once, so that all worlds have the same size.
    level = [np.append(draw.choice(LEVELS, n - LEVELS, p=draw.dirichlet(np.ones(LEVELS) * 2)),
                       np.arange(LEVELS)) for n in people]  # fmt: skip

    def label(columns: Any) -> Any:
        group = np.array([int(name) for name in columns["group"]])
        return alpha[group, np.asarray(columns["level"], int)]

    def transition(columns: Any, accepted: bool, positive: bool) -> Any:
        if not accepted:
            return None
        now = np.asarray(columns["level"])
        if attack.changes == "turns":
            return {"level": LEVELS - 1 - now}
        return {"level": np.clip(now + (1 if positive else -1), 0, LEVELS - 1)}

    return sellf.world_from_frame(
        {
            "group": np.repeat(np.arange(groups), people).astype(str).tolist(),
            "level": np.concatenate(level).tolist(),
        },
        group="group",
        numeric=["level"],
        label=label,
        transition=transition,
        cost=float(draw.uniform(0.2, 0.8)),
        population=attack.population,
        horizon=attack.horizon,
        window=500,
    )


def case_of(attack: Attack, seed: int) -> Case:
    """Return what is trained with a seed."""
    settings = {"omega": attack.omega, "delta": attack.delta, "rollout": attack.rollout}
    world = world_of(attack, seed)
    return Case(world, attack.notion, attack.steps, 1, {}, 0, settings | attack.settings)


def line(attack: Attack, rows: list[dict[str, Any]]) -> str:
    """Return a row of the table."""

    def column(key: str) -> np.ndarray:
        return np.array([row[key] for row in rows], float)

    number, proven = len(rows), column("bound") <= attack.omega
    false = column("on_people") > column("bound")
    as_met = column("as_met") > column("bound_as_met")
    above = proven & (column("on_people") > attack.omega)
    most = below(int(false.sum()), number)
    ratio = np.nanmax(column("on_people") / column("bound"))
    return (
        f"| {attack.says} | {attack.notion} | {attack.omega:g} | {attack.delta:g} | {number} | "
        f"{int(proven.sum())} | {int(false.sum())} (below {most:.0%}) | {int(as_met.sum())} | "
        f"{int(above.sum())} | {ratio:.2f} |"
    )


def main(arguments: list[str] | None = None) -> int:
    """Train what is missing, and print the table."""
    parser = argparse.ArgumentParser(description="Attacks on the certificate of sellf-plan.")
    parser.add_argument("folder", type=Path, help="where finished trainings are kept")
    parser.add_argument("--only", nargs="*", choices=list(ATTACKS), default=list(ATTACKS))
    parser.add_argument("--seeds", type=int, default=40)
    parser.add_argument("--table", action="store_true", help="train nothing")
    options = parser.parse_args(arguments)
    options.folder.mkdir(parents=True, exist_ok=True)
    lines = []
    for name in options.only:
        attack, path = ATTACKS[name], options.folder / f"{name}.jsonl"
        if not options.table:
            finish(path, lambda seed, own=attack: case_of(own, seed), options.seeds, name)
        rows = read(path)
        if rows:
            lines.append(line(attack, rows))
    heads = (
        "| attack | notion | omega | delta | trainings | certified | false bounds (95 % limit) | "
        "false as met | certified, above omega | largest truth / bound |"
    )
    print("\n".join([heads, f"|{' --- |' * 10}", *lines]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
