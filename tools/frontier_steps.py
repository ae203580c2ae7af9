"""What a coarser calculation makes of the frontier: why two sets of figures differ in a decimal.

    python tools/frontier_steps.py          # about two minutes

Expected populations can be followed exactly (`sellf.planning.mean_field`), or in steps of h
decisions at once, d <- d + h / N (d P - d), with the reward of a step as if people did not change
within it. The first table has the same policies of lending both ways. In the second, the disparity
of recidivism is limited at a few evenly spaced times only, so that it may be larger between them.
"""

import sys
from dataclasses import replace

import numpy as np

from sellf.planning import mean_field, optimise, problem
from sellf.planning.cells import cells
from sellf.planning.law import Law, law_of
from sellf.planning.plan import fine, plan

STEPS = (1, 10, 50, 100)
OMEGAS = (None, 0.2, 0.1, 0.05, 0.02)
TIMES = (2, 3, 5, 9)
OMEGA = 0.05


def in_steps(law: Law, policy: np.ndarray, step: int) -> float:
    """Return the reward of a policy (actions, profiles), so many decisions at once."""
    onward, worth = law.mixed(policy), (policy * law.gain).sum(axis=0)
    people, total = law.people, law.start
    for _ in range(law.horizon // step):
        total += step * float(people @ worth)
        people = people + step / law.population * (people @ onward - people)
    return total


def limited_at(law: Law, notion: str, times: int, start: np.ndarray) -> tuple[float, float]:
    """Return the reward if omega is kept at some times only, and the largest disparity then."""
    schedule = mean_field.even(law, 1, times)
    asked = problem.make(law, notion, schedule, cells(law))
    found = optimise.best(asked, OMEGA, [start])
    every = replace(asked, schedule=fine(asked))
    return found.reward, float(every.gaps(every.course(found.variables).rates).max())


def main() -> int:
    """Print both tables."""
    law = law_of("lending")
    print("| lending, opportunity: omega | exact |", end="")
    print(" | ".join(f" steps of {h}" for h in STEPS), "|")
    print("| --- " * (2 + len(STEPS)) + "|")
    near = []
    for omega in OMEGAS:
        near = [plan(law, "opportunity", omega, starts=2, near=near)]
        each = [f"{in_steps(law, near[0].policy[0], h):,.1f}" for h in STEPS]
        print(f"| {omega or 'none'} | {near[0].reward:,.1f} | {' | '.join(each)} |", flush=True)
    law = law_of("recidivism")
    best = plan(law, "accuracy", OMEGA, starts=2)
    print("\n| recidivism, accuracy: omega 0.05 kept at | reward | largest disparity |")
    print("| --- | --- | --- |")
    for times in TIMES:
        reward, largest = limited_at(law, "accuracy", times, best.policy[0, 1])
        print(f"| {times} times | {reward:,.2f} | {largest:.4f} |", flush=True)
    print(f"| every time | {best.reward:,.2f} | {best.largest:.4f} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
