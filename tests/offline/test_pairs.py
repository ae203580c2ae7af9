"""The change of a disparity, against a search over everything that is possible."""

import numpy as np
import pytest

from sellf.offline.pairs import spread_change


@pytest.mark.parametrize("seed", range(12))
def test_two_groups_agree_with_a_fine_search(seed):
    rng = np.random.default_rng(seed)
    x, moved = rng.uniform(-0.5, 0.5, 2)
    room = rng.uniform(0.01, 0.3, 3)
    ends = [(v - r, v + r) for v, r in zip((x, x + moved, moved), room, strict=True)]
    lower = [np.array([[0, -high], [low, 0]]) for low, high in ends]
    low, high = spread_change(*lower)
    grid_x = np.linspace(*ends[0], 801)[:, None]
    grid_y = np.linspace(*ends[1], 801)[None, :]
    possible = (grid_y - grid_x >= ends[2][0]) & (grid_y - grid_x <= ends[2][1])
    values = (np.abs(grid_y) - np.abs(grid_x))[possible]
    assert low <= values.min() + 1e-9
    assert high >= values.max() - 1e-9
    assert values.min() - low < 0.01
    assert high - values.max() < 0.01


@pytest.mark.parametrize("seed", range(20))
def test_more_groups_contain_the_truth(seed):
    rng = np.random.default_rng(seed)
    before, after = rng.random(4), rng.random(4)
    room = rng.uniform(0, 0.1, (3, 4, 4))

    def below(values, slack):
        made = values[:, None] - values[None, :] - slack
        np.fill_diagonal(made, 0)
        return made

    found = spread_change(
        below(before, room[0]), below(after, room[1]), below(after - before, room[2])
    )
    true = np.ptp(after) - np.ptp(before)
    assert found[0] - 1e-9 <= true <= found[1] + 1e-9
