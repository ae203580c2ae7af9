"""Range of the change of a disparity, from bounds on the differences between groups."""

from itertools import combinations

import numpy as np

from sellf.logs.person import Floats


def spread_change(now: Floats, proposed: Floats, moved: Floats) -> tuple[float, float]:
    """Return the range of the change of the largest difference between groups.

    Args:
        now: now[i, j] is a lower bound on group i minus group j under the current policy.
        proposed: the same under the proposed policy.
        moved: lower bounds on the change of that difference.
    """
    if len(now) == 2:
        return _of_two(
            (now[1, 0], -now[0, 1]), (proposed[1, 0], -proposed[0, 1]), (moved[1, 0], -moved[0, 1])
        )
    away = ~np.eye(len(now), dtype=bool)

    def ends(lower: Floats) -> tuple[float, float]:
        return max(float(lower[away].max()), 0.0), float(-lower[away].min())

    before, after = ends(now), ends(proposed)
    # The pair with the largest difference afterwards had at most the largest difference before,
    # and vice versa.
    after_may = away & (after[0] <= -proposed.T)
    before_may = away & (before[0] <= -now.T)
    high = min(float((-moved.T)[after_may].max()), after[1] - before[0])
    low = max(float(moved[before_may].min()), after[0] - before[1])
    return (low, high) if low <= high else (-1.0, 1.0)


def _of_two(
    now: tuple[float, float], proposed: tuple[float, float], moved: tuple[float, float]
) -> tuple[float, float]:
    """Return the range of |y| - |x| over x in now, y in proposed, y - x in moved.

    It is linear between the lines x = 0 and y = 0, so its extremes are at intersections of lines.
    """
    # Each line as a, b, c with a x + b y = c.
    lines = [(1.0, 0.0, c) for c in (*now, 0.0)] + [(0.0, 1.0, c) for c in (*proposed, 0.0)]
    lines += [(-1.0, 1.0, c) for c in moved]
    found = []
    for (a1, b1, c1), (a2, b2, c2) in combinations(lines, 2):
        determinant = a1 * b2 - a2 * b1
        if determinant == 0:
            continue
        x, y = (c1 * b2 - c2 * b1) / determinant, (a1 * c2 - a2 * c1) / determinant
        inside = zip((x, y, y - x), (now, proposed, moved), strict=True)
        if all(low - 1e-9 <= value <= high + 1e-9 for value, (low, high) in inside):
            found.append(abs(y) - abs(x))
    # The three ranges contradict each other with probability delta at most: nothing is claimed.
    return (float(min(found)), float(max(found))) if found else (-1.0, 1.0)
