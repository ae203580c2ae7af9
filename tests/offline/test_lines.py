"""What people add to a sum under another policy has the right mean, whatever is predicted."""

import numpy as np
import pytest

from sellf.fairness.notions import TABLE
from sellf.logs.person import Person
from sellf.offline.lines import reward, utility
from sellf.offline.sample import Part

RATES = [entry.alone for entry in TABLE.values() if len(entry.rates) == 1]


def expected(line, p, good, guess, reach=np.inf):
    """The exact expectation over the decision and the outcome, case by case."""
    rows, total = len(p), np.zeros(len(p))
    for a, y, weight in ((0, 0, 1 - p), (1, 1, p * good), (1, 0, p * (1 - good))):
        person = Person(np.full(rows, a * 1.0), np.full(rows, a * y * 1.0), p, guess)
        part = Part(np.arange(rows), person, guess, 0.01)
        total += weight * part.values(line, reach)
    return float(total.mean())


@pytest.fixture
def people():
    rng = np.random.default_rng(5)
    n = 400
    return {
        "p": rng.uniform(0.02, 1, n),
        "good": rng.random(n),
        "guess": rng.random(n),
        "chance": rng.random(n),
    }


def worlds(chance, good):
    """Decision, outcome and the chance of both: independent given the features."""
    return [
        (a, y, (chance if a else 1 - chance) * (good if y else 1 - good))
        for a in (0, 1)
        for y in (0, 1)
    ]


@pytest.mark.parametrize("rate", RATES, ids=lambda rate: rate.name)
def test_a_rate_under_another_policy_is_unbiased_with_any_prediction(rate, people):
    p, good, guess, chance = people.values()
    target = utility(rate, chance, len(p))
    for line, sums in ((target.of, rate.of), (target.among, rate.among)):
        true = sum(float((w * sums.value(a, a * y, y)).mean()) for a, y, w in worlds(chance, good))
        if line is not None:
            assert expected(line, p, good, guess) == pytest.approx(true, abs=1e-12)
        else:
            assert true == pytest.approx(1, abs=1e-12)


@pytest.mark.parametrize("rate", RATES, ids=lambda rate: rate.name)
def test_the_decisions_made_are_counted_as_they_were(rate, people):
    p, good, guess, _ = people.values()
    target = utility(rate, None, len(p))
    true = sum(float((w * rate.of.value(a, a * y, y)).mean()) for a, y, w in worlds(p, good))
    assert expected(target.of, p, good, guess) == pytest.approx(true, abs=1e-12)


def test_reward_is_the_expected_gain(people):
    p, good, guess, chance = people.values()
    found = expected(reward(chance, 0.7, len(p)).of, p, good, guess)
    assert found == pytest.approx(float((chance * (good - 0.7)).mean()), abs=1e-12)


@pytest.mark.parametrize("reach", [0.05, 0.3, 2.0])
def test_cut_values_never_exceed_the_truth_on_average(people, reach):
    p, good, guess, chance = people.values()
    for sign in (1.0, -1.0):
        line = utility(TABLE["opportunity"].alone, chance, len(p)).of * sign
        assert expected(line, p, good, guess, reach) <= expected(line, p, good, guess) + 1e-12


def test_values_stay_within_their_reach(people):
    p, _, guess, chance = people.values()
    line = utility(TABLE["opportunity"].alone, chance, len(p)).of
    for a, y in ((0, 0), (1, 0), (1, 1)):
        person = Person(np.full(len(p), a * 1.0), np.full(len(p), a * y * 1.0), p, guess)
        values = Part(np.arange(len(p)), person, guess, 0.01).values(line, 0.4)
        assert values.min() >= line.low - 0.4 - 1e-12
        assert values.max() <= line.high + 0.4 + 1e-12
