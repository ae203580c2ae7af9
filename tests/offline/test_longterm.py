"""What a policy comes to over time in a world fitted to a log, against the world it came from."""

import numpy as np
import pytest

import sellf
from sellf.errors import InputError
from sellf.fairness.notions import define
from sellf.offline.history import read, reading_options
from sellf.offline.longterm import long_term

STATES, ROWS, COST, HORIZON = 4, 5, 0.5, 6
GOOD = np.array([[0.2, 0.45, 0.65, 0.85], [0.3, 0.55, 0.75, 0.9]])
NOW = np.array([0.15, 0.4, 0.8, 0.95])
FIRST = np.array([[0.4, 0.3, 0.2, 0.1], [0.1, 0.2, 0.3, 0.4]])
COLUMNS = {
    "group": "race",
    "decision": "approved",
    "outcome": "repaid",
    "propensity": "p",
    "person": "who",
    "time": "day",
}


def log(people, seed):
    """Whoever repays moves up, whoever does not moves down, the rejected stay."""
    rng = np.random.default_rng(seed)
    group = rng.integers(2, size=people)
    state = np.array([rng.choice(STATES, p=FIRST[g]) for g in group])
    parts = []
    for day in range(ROWS):
        p = NOW[state]
        approved = (rng.random(people) < p).astype(int)
        good = (rng.random(people) < GOOD[group, state]).astype(float)
        repaid = np.where(approved == 1, good, np.nan)
        parts.append((group, state, approved, repaid, p, np.arange(people), np.full(people, day)))
        moved = np.where(good == 1, state + 1, state - 1)
        state = np.where(approved == 1, np.clip(moved, 0, STATES - 1), state)
    names = ("race", "x", "approved", "repaid", "p", "who", "day")
    found = {n: np.concatenate(c) for n, c in zip(names, zip(*parts, strict=True), strict=True)}
    mixed = rng.permutation(len(found["race"]))
    found = {name: column[mixed] for name, column in found.items()}
    return found | {"race": np.array(["B", "W"])[found["race"]]}


def true_course(chance):
    """Disparity and reward before each decision, one group and one state after the other."""
    people = FIRST / 2
    gaps, rewards = [], []
    for _ in range(HORIZON):
        shares = []
        for g in (0, 1):
            both = sum(people[g, s] * GOOD[g, s] * chance[g, s] for s in range(STATES))
            shares.append(both / sum(people[g, s] * GOOD[g, s] for s in range(STATES)))
        gaps.append(abs(shares[1] - shares[0]))
        rewards.append(float((people * chance * (GOOD - COST)).sum()))
        after = np.zeros_like(people)
        for g in (0, 1):
            for s in range(STATES):
                up, down = min(s + 1, STATES - 1), max(s - 1, 0)
                after[g, up] += people[g, s] * chance[g, s] * GOOD[g, s]
                after[g, down] += people[g, s] * chance[g, s] * (1 - GOOD[g, s])
                after[g, s] += people[g, s] * (1 - chance[g, s])
        people = after
    return gaps, rewards


@pytest.fixture(scope="module")
def followed():
    history = read(log(6000, 3), reading_options({**COLUMNS, "seed": 1}), ("x",), None)
    x = history.extra["x"].astype(int)
    new = np.where(x >= 1, 0.9, 0.1)
    guess = GOOD.mean(axis=0)[x]
    rate = define("opportunity").alone
    return long_term(history, {"x": x}, guess, new, rate, COST, HORIZON)


def test_the_fitted_world_comes_to_what_the_true_one_does(followed):
    policies = {
        "now": np.tile(NOW, (2, 1)),
        "new": np.tile(np.where(np.arange(STATES) >= 1, 0.9, 0.1), (2, 1)),
    }
    for name, chance in policies.items():
        gaps, rewards = true_course(chance)
        for step, gap, reward in zip(followed.steps, gaps, rewards, strict=True):
            assert getattr(step, f"disparity_{name}").value == pytest.approx(gap, abs=0.025)
            assert getattr(step, f"reward_{name}").value == pytest.approx(reward, abs=0.012)


def test_the_answer_says_that_it_is_a_model_and_how_much_is_chance(followed):
    assert followed.sentence.startswith("model-based, not certified")
    last = followed.steps[-1].disparity_new
    assert last.low <= last.value <= last.high
    assert last.low < last.high


def test_a_policy_is_followed_beside_its_certificate():
    asked = {"features": ["x"], "cost": COST, "omega": 0.3, "reward_at_least": 0.0, "seed": 2}
    found = sellf.improve(log(1500, 4), horizon=3, **asked, **COLUMNS)
    assert found.policy is not None
    assert found.long_term is not None
    assert len(found.long_term.steps) == 3
    assert "Over time (model-based)" in found.policy.card
    assert "model-based, not certified" in str(found)
    assert "model-based" not in found.sentence


def test_without_person_and_time_there_is_no_horizon():
    columns = {n: c for n, c in COLUMNS.items() if n not in ("person", "time")}
    with pytest.raises(InputError, match="person and time"):
        sellf.improve(log(300, 5), features=["x"], cost=COST, horizon=3, **columns)
