"""Measure `sellf.improve` on lending logs whose truth is known, and print a table.

    python tools/measure_improve.py build/improve --logs 200      # goes on where it was stopped
    python tools/measure_improve.py build/improve --table         # only the table

Logs of 5,000, 50,000 and 500,000 rows were decided by PPO's policy with 2 % exploration. Of every
policy that is returned, disparity and reward under the known law are kept, one line of JSON a log.
The reward is held against the best one-step policy within omega, found by a linear program.
"""

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import beta

import sellf
from lending_log import COLUMNS, COST, FEATURES, Truth, truth

SIZES = (5_000, 50_000, 500_000)
ORDER = (1, 0, 1, 2)
"""The middle size twice as often: its share certified is promised."""


def measure(law: Truth, people: int, seed: int, asked: dict[str, Any]) -> dict[str, Any]:
    """Return what became of one log."""
    start = time.process_time()
    found = sellf.improve(
        law.draw(people, seed), features=FEATURES, cost=COST, seed=seed, **asked, **COLUMNS
    )
    row: dict[str, Any] = {"people": people, "seed": seed, **asked, "certified": found.certified}
    row["seconds"] = round(time.process_time() - start, 2)
    row["sentence"] = found.sentence
    if found.policy is not None:
        chance = found.policy.probability(law.columns)
        row |= {"gap": law.gap(chance), "reward": law.reward(chance)}
    return row


def interval(k: int, n: int) -> tuple[float, float]:
    """Return the Clopper-Pearson interval for a share."""
    low = float(beta.ppf(0.025, k, n - k + 1)) if k else 0.0
    return low, float(beta.ppf(0.975, k + 1, n - k)) if k < n else 1.0


def table(rows: list[dict[str, Any]], law: Truth) -> str:
    """Return the table, as Markdown."""
    lines = [
        "| rows | floor | group | logs | certified | truly outside omega | reward / frontier | "
        "reward / now | s |",
        "| ---: | ---: | --- | ---: | --- | --- | --- | --- | ---: |",
    ]
    now = law.reward(law.logging)
    kinds = sorted({(r["people"], r["reward_at_least"], r["use_group"], r["omega"]) for r in rows})
    for people, floor, seen, omega in kinds:
        key = (people, floor, seen, omega)
        own = [
            r
            for r in rows
            if (r["people"], r["reward_at_least"], r["use_group"], r["omega"]) == key
        ]
        kept = [r for r in own if r["certified"]]
        out = sum(abs(r["gap"]) > omega for r in kept)
        low, high = interval(len(kept), len(own))
        frontier = law.frontier(omega, blind=not seen)
        rewards = np.array([r["reward"] for r in kept])
        beside = "-", "-"
        if len(kept):
            error = 1.96 * rewards.std() / len(rewards) ** 0.5
            beside = (
                f"{rewards.mean() / frontier:.1%} ± {error / frontier:.1%}",
                f"{rewards.mean() / now:.0%} ({rewards.min() / now:.0%} to "
                f"{rewards.max() / now:.0%})",
            )
        lines.append(
            f"| {people:,} | {floor:g} | {'seen' if seen else 'not seen'} | {len(own)} | "
            f"{len(kept) / len(own):.0%} ({low:.0%} to {high:.0%}) | {out} of {len(own)} | "
            f"{beside[0]} | {beside[1]} | {np.mean([r['seconds'] for r in own]):.0f} |"
        )
    return "\n".join(lines)


def main(arguments: list[str] | None = None) -> int:
    """Measure what is left, and print the table."""
    parser = argparse.ArgumentParser(description="How often improve's promises hold.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--logs", type=int, default=200, help="of each size")
    parser.add_argument("--omega", type=float, default=0.05)
    parser.add_argument("--reward-at-least", type=float, default=0.2)
    parser.add_argument("--blind", action="store_true", help="the policy may not see the group")
    parser.add_argument("--sizes", type=int, nargs="+", default=list(SIZES))
    parser.add_argument("--seconds", type=float, default=1e9, help="of the processor, in all")
    parser.add_argument("--table", action="store_true", help="print the table and end")
    typed = parser.parse_args(arguments)
    typed.folder.mkdir(parents=True, exist_ok=True)
    law = truth(typed.folder)
    store = typed.folder / "logs.jsonl"
    rows = [json.loads(line) for line in store.read_text().splitlines()] if store.exists() else []
    asked = {
        "omega": typed.omega,
        "reward_at_least": typed.reward_at_least,
        "use_group": not typed.blind,
    }
    done = {(r["people"], r["seed"]) for r in rows if all(r[name] == asked[name] for name in asked)}
    order = [typed.sizes[k] for k in ORDER] if len(typed.sizes) == len(SIZES) else typed.sizes
    following = dict.fromkeys(typed.sizes, 0)
    begun = time.process_time()
    while not typed.table and time.process_time() - begun < typed.seconds:
        if all(seed >= typed.logs for seed in following.values()):
            break
        for people in order:
            while (people, following[people]) in done:
                following[people] += 1
            if following[people] >= typed.logs:
                continue
            row = measure(law, people, following[people], asked)
            done.add((people, following[people]))
            rows.append(row)
            with store.open("a") as file:
                file.write(json.dumps(row) + "\n")
    print(table(rows, law))
    return 0


if __name__ == "__main__":
    sys.exit(main())
