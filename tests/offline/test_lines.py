"""What people add to a sum under another policy has the right mean, whatever is predicted."""

import numpy as np
import pytest

from sellf.audit.scores import scores
from sellf.fairness.notions import TABLE
from sellf.logs.person import Person
from sellf.offline.lines import Affine, Chance, Line, reward, utility
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
    target = utility(rate, Chance(chance))
    for line, sums in ((target.of, rate.of), (target.among, rate.among)):
        true = sum(float((w * sums.value(a, a * y, y)).mean()) for a, y, w in worlds(chance, good))
        if line is not None:
            assert expected(line, p, good, guess) == pytest.approx(true, abs=1e-12)
        else:
            assert true == pytest.approx(1, abs=1e-12)


@pytest.mark.parametrize("rate", RATES, ids=lambda rate: rate.name)
def test_the_decisions_made_are_counted_as_they_were(rate, people):
    p, good, guess, _ = people.values()
    target = utility(rate, None)
    true = sum(float((w * rate.of.value(a, a * y, y)).mean()) for a, y, w in worlds(p, good))
    assert expected(target.of, p, good, guess) == pytest.approx(true, abs=1e-12)


def test_reward_is_the_expected_gain(people):
    p, good, guess, chance = people.values()
    found = expected(reward(Chance(chance), 0.7).of, p, good, guess)
    assert found == pytest.approx(float((chance * (good - 0.7)).mean()), abs=1e-12)


@pytest.mark.parametrize("reach", [0.05, 0.3, 2.0])
def test_cut_values_never_exceed_the_truth_on_average(people, reach):
    p, good, guess, chance = people.values()
    for sign in (1.0, -1.0):
        line = utility(TABLE["opportunity"].alone, Chance(chance)).of * sign
        assert expected(line, p, good, guess, reach) <= expected(line, p, good, guess) + 1e-12


def test_values_stay_within_their_reach(people):
    p, _, guess, chance = people.values()
    line = utility(TABLE["opportunity"].alone, Chance(chance)).of
    for a, y in ((0, 0), (1, 0), (1, 1)):
        person = Person(np.full(len(p), a * 1.0), np.full(len(p), a * y * 1.0), p, guess)
        values = Part(np.arange(len(p)), person, guess, 0.01).values(line, 0.4)
        assert values.min() >= line.low - 0.4 - 1e-12
        assert values.max() <= line.high + 0.4 + 1e-12


def slowly(line, person, guess, reach, overlap):
    """The values of a form by row, from both scores of the audit."""
    found = []
    for i in range(len(guess)):
        one = Person(*(None if x is None else x[i : i + 1] for x in person[:4]))
        one = one._replace(
            pending=None if person.pending is None else person.pending[i : i + 1],
            rejected_positive=(
                None if person.rejected_positive is None else person.rejected_positive[i : i + 1]
            ),
        )
        slope, level = float(line.slope.at(i)), float(line.level.at(i))
        far = np.array([reach / max(abs(slope), 1e-12)])
        both = scores(one, overlap, guess[i : i + 1], far, far, clip=True)
        score = both.low0 if slope >= 0 else both.high1
        found.append(float(slope * score[0] + level) if slope else level)
    return np.array(found)


@pytest.mark.parametrize("reach", [0.0, 0.05, 0.7, 30.0, np.inf])
@pytest.mark.parametrize("kind", ["propensities", "pending", "no propensities", "all outcomes"])
@pytest.mark.parametrize("signs", [(1,), (-1,), (-1, 0, 1)])
def test_one_sided_scores_are_those_of_the_audit(reach, kind, signs):
    rng = np.random.default_rng(3)
    n = 60
    p = np.where(rng.random(n) < 0.2, rng.choice([0.0, 0.005, 0.01, 1.0], n), rng.random(n))
    accepted = (rng.random(n) < 0.5).astype(float)
    waiting = accepted * (rng.random(n) < 0.3) if kind == "pending" else np.zeros(n)
    positive = accepted * (1 - waiting) * (rng.random(n) < 0.5)
    guess = rng.random(n)
    person = Person(accepted, positive, None if kind == "no propensities" else p, guess)
    if kind == "pending":
        person = person._replace(pending=waiting)
    if kind == "all outcomes":
        person = person._replace(rejected_positive=(1 - accepted) * (rng.random(n) < 0.5))
    slope = rng.random(n) * rng.choice(signs, n)
    tilted = Affine(-1.0, ((Chance((slope + 1) / 2), 2.0),))
    line = Line(tilted, 0.0, 0.0, Affine(0.0, ((Chance(rng.random(n)), 1.0),)), 0.0, 1.0)
    found = Part(np.arange(n), person, guess, 0.01).values(line, reach)
    assert found == pytest.approx(slowly(line, person, guess, reach, 0.01), abs=1e-12)


def test_several_reaches_at_once_are_expected_as_one_by_one(people):
    p, good, guess, chance = people.values()
    rng = np.random.default_rng(1)
    accepted = (rng.random(len(p)) < p).astype(float)
    person = Person(accepted, accepted * (rng.random(len(p)) < good), p, guess)
    part = Part(np.arange(len(p)), person, guess, 0.01)
    line = utility(TABLE["opportunity"].alone, Chance(chance)).around(0.3)
    reaches = [0.01, 0.4, 3.0, np.inf]
    together = part.expected(line, reaches)
    assert together == [part.expected(line, [reach])[0] for reach in reaches]
    assert together[-1][0] == pytest.approx(part.values(line, np.inf).mean(), abs=0.1)
