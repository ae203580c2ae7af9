"""The expected population: against a plain recursion, the simulator, and finite differences."""

import numpy as np
import pytest

pytest.importorskip("jax")

import jax

from sellf.envs import world as worlds
from sellf.envs.rollout import rollout
from sellf.envs.worlds import make_world
from sellf.fairness.notions import NOTIONS, Counts, gap
from sellf.planning import mean_field
from sellf.planning.law import law_of, sample
from sellf.planning.optimise import Found
from sellf.planning.problem import make
from sellf.planning.result import describe
from tests.planning.laws import random_law, random_policy


def plain(law, policy):
    """Return the reward and the populations at all times, one decision after the other."""
    ends = mean_field.bounds(law, len(policy))
    people, reward, all_people = law.people, law.start, [law.people]
    for t in range(law.horizon):
        chance = policy[np.searchsorted(ends, t, side="right") - 1]
        reward += people @ (chance * law.gain).sum(axis=0)
        moved = sum(
            (share * people) @ step.toarray()
            for share, step in zip(chance, law.transition, strict=True)
        )
        people = people + (moved - people) / law.population
        all_people.append(people)
    return reward, np.array(all_people)


def counts(law, people, chance):
    """Return what a population's decisions come to, by group."""
    favoured = chance[np.asarray(law.favourable)].sum(axis=0)
    parts = (people, people * favoured, people * favoured * law.alpha)
    parts = (*parts, people * (1 - favoured) * law.alpha)
    return Counts(*(np.bincount(law.group, part) for part in parts))


@pytest.mark.parametrize("notion", NOTIONS)
@pytest.mark.parametrize("segments", [1, 3])
def test_reward_and_disparity_are_those_of_the_recursion(notion, segments):
    law = random_law(groups=3, actions=3)
    policy = random_policy(law, segments)
    problem = make(law, notion, mean_field.even(law, segments, 7), np.arange(law.profiles))
    found = problem.course(policy[:, 1:].ravel())
    reward, people = plain(law, policy)
    assert found.reward == pytest.approx(reward, abs=1e-10)
    schedule = problem.schedule
    expected = [
        gap(notion, counts(law, people[t], policy[s]))
        for t, s in zip(schedule.times, schedule.segment, strict=True)
    ]
    assert problem.gaps(found.rates) == pytest.approx(np.array(expected), abs=1e-10)


def test_the_recursion_of_lending_over_its_whole_horizon():
    law = law_of("lending")
    policy = random_policy(law)
    reward, people = plain(law, policy)
    found = mean_field.course(law, (), mean_field.even(law, 1, 3), policy)
    assert found.reward == pytest.approx(reward, abs=1e-8)
    assert mean_field.population(law, policy[0], np.array([0, 7, 10_000])) == pytest.approx(
        people[[0, 7, 10_000]], abs=1e-12
    )


def test_the_simulator_comes_to_the_same_on_average():
    world = make_world("lending", horizon=600, population=200)
    law = law_of(world)
    problem = make(law, "opportunity", mean_field.even(law, 1, 3), np.arange(law.profiles))
    chances = random_policy(law)[:, 1:].ravel()
    found = problem.course(chances)
    policy = describe(
        problem, Found(chances, found.reward, 0.0), None, mean_field.even(law, 1, 3)
    ).at(0)

    def episode(key):
        first, second = jax.random.split(key)
        state, steps = rollout(world, second, worlds.reset(world, first), 600, policy)
        return steps.reward.sum(), state.profile

    number = 400
    rewards, people = jax.jit(jax.vmap(episode))(jax.random.split(jax.random.key(0), number))
    error = float(np.std(rewards)) / np.sqrt(number)
    assert world.start + float(np.mean(rewards)) == pytest.approx(found.reward, abs=4 * error)
    shares = np.bincount(np.asarray(people).ravel(), minlength=20) / people.size
    expected = mean_field.population(law, problem.policy(chances)[0], np.array([600]))[0]
    assert shares == pytest.approx(expected, abs=4 * 0.5 / np.sqrt(people.size))


@pytest.mark.parametrize("notion", NOTIONS)
def test_gradients_are_those_of_finite_differences(notion):
    law = random_law(groups=3, actions=3)
    problem = make(law, notion, mean_field.even(law, 2, 4), np.arange(law.profiles))
    at = 0.8 * random_policy(law, 2)[:, 1:].ravel() + 0.05
    found = problem.course(at)
    reward, rates = problem.slopes(at, found)
    for i in range(at.size):
        ahead, behind = (problem.course(at + e * np.eye(at.size)[i]) for e in (1e-6, -1e-6))
        assert reward[i] == pytest.approx((ahead.reward - behind.reward) / 2e-6, abs=1e-6)
        slope = (ahead.rates - behind.rates).ravel() / 2e-6
        assert rates[:, i] == pytest.approx(slope, abs=1e-7)


def test_a_sample_keeps_the_shares_of_groups_and_whoever_they_become():
    law = random_law(groups=3, profiles=40)
    some = sample(law, 30)
    shares = [np.bincount(each.group, each.people) for each in (law, some)]
    assert shares[1] == pytest.approx(shares[0])
    assert all(step.sum(axis=1) == pytest.approx(1.0) for step in some.transition)
