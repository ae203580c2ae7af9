"""Attention and admission: their laws against slow simulations, and mistakes in their settings."""

from math import erf, sqrt

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import sellf
from sellf.cli import main
from sellf.envs import world as worlds
from sellf.envs.policy import of_chances
from sellf.envs.rollout import rollout
from sellf.envs.table import successors
from sellf.envs.worlds import make_world
from sellf.errors import InputError

CLASSES, WIDTH = 13, 0.15


def distance(one, other):
    """Total variation between two histograms."""
    return 0.5 * abs(one / one.sum() - other / other.sum()).sum()


def attended(risk):
    """A policy: the riskier, the more often."""
    return 0.1 + 0.065 * risk


def chain(speed):
    """The chain of risk classes under that policy, by hand."""
    step = np.zeros((CLASSES, CLASSES))
    for risk in range(CLASSES):
        down = attended(risk)
        step[risk, max(risk - 1, 0)] += speed * down
        step[risk, min(risk + 1, CLASSES - 1)] += speed * (1 - down)
        step[risk, risk] += 1 - speed
    return step


def test_sites_are_distributed_as_the_chain_s_stationary_distribution():
    world = make_world("attention", dynamic_rate=0.12, horizon=4096, start=1e6, window=100)
    policy = of_chances(lambda profile: 0.1 + 0.065 * (profile % CLASSES).astype(jnp.float32))
    run = jax.jit(lambda key, state: rollout(world, key, state, 4096, policy)[0])
    state, total = worlds.reset(world, jax.random.key(0)), np.zeros(2 * CLASSES)
    for i in range(80):
        state = run(jax.random.key(i), state._replace(over=jnp.asarray(False)))
        if i >= 20:
            total += np.bincount(np.asarray(state.profile), minlength=2 * CLASSES)
    exact = np.linalg.matrix_power(chain(0.12 / WIDTH), 4096)[0]
    for location in total.reshape(2, CLASSES):
        assert distance(location, exact) < 0.02


def test_attention_is_the_law_as_it_is_written_down():
    """Site by site, in plain NumPy, with draws of its own: incidents are Poisson."""
    rng = np.random.default_rng(0)
    found = np.zeros(CLASSES)
    for risk in range(CLASSES):
        incidents = rng.poisson(WIDTH * risk, 20_000)
        found[risk] = (incidents > 0).mean()
    world = make_world("attention", rates={"here": 0.3, "there": 1.5})
    alpha = np.asarray(world.alpha).reshape(2, CLASSES)
    np.testing.assert_allclose(alpha, np.tile(found, (2, 1)), atol=0.015)
    moves, chances = successors(world)
    risk = np.arange(2 * CLASSES) % CLASSES
    for action, sign in ((0, 1), (1, -1)):
        change = (moves[:, action] - np.arange(2 * CLASSES)[:, None, None]) * WIDTH
        mean = (change * chances[:, action]).sum(axis=-1)
        inside = (risk > 0) & (risk < CLASSES - 1)
        np.testing.assert_allclose(mean[inside], sign * 0.1, atol=1e-6)
        edge = 0 if sign < 0 else CLASSES - 1
        assert (mean[risk == edge] == 0).all()  # no rate below 0 or above the highest
    share = np.diff(np.asarray(world.arrivals.cumulative, float), prepend=0)
    people = np.zeros(2 * CLASSES)
    people[np.asarray(world.arrivals.profile)] = share
    for location, rate in zip(people.reshape(2, CLASSES), (0.3, 1.5), strict=True):
        drawn = rng.binomial(CLASSES - 1, rate / 1.8, 100_000)
        assert distance(np.bincount(drawn, minlength=CLASSES), location) < 0.01
        assert 2 * location @ np.arange(CLASSES) * WIDTH == pytest.approx(rate, abs=1e-5)


def slow_admission(threshold, rounds, people, again, improvement, seed):
    """Return scores, efforts and who was eligible and admitted in the last round, by the rules."""
    rng = np.random.default_rng(seed)
    group = rng.integers(0, 2, people)
    most = np.array([1 / 5, 1 / 10])[group]
    ability, raised = np.clip(rng.normal(0.5, 0.1, people), 0, 1), np.zeros(people)
    for _ in range(rounds):
        score = ability + raised
        eligible = ability + improvement * raised + rng.normal(0, 0.05, people) >= 0.55
        admitted = score > threshold
        last = group, score.copy(), raised.copy(), eligible, admitted
        for i in range(people):
            if not admitted[i] and rng.random() < again:
                raised[i] += rng.random() * (most[i] - raised[i])
            else:
                ability[i], raised[i] = min(max(rng.normal(0.5, 0.1), 0), 1), 0.0
    return last


def fast_admission(world, threshold, rounds, people):
    """Return the same from the world's own functions."""

    def turn(carry, key):
        someone, _ = carry
        label, luck = jax.random.split(key)
        seen = world.seen(someone)
        admitted = seen[:, 0] * 0.1 + 0.5 > threshold
        eligible = jax.random.uniform(label, (people,)) < world.label_chance(someone)
        after = world.follow(
            someone, admitted.astype(jnp.int32), eligible, world.luck(luck, (people,))
        )
        return (after, (someone, eligible, admitted)), None

    def lived(key):
        first, then = jax.random.split(key)
        start = world.arriving(first, (people,))
        nobody = jnp.zeros(people, bool)
        carry = start, (start, nobody, nobody)
        return jax.lax.scan(turn, carry, jax.random.split(then, rounds))[0][1]

    someone, eligible, admitted = jax.jit(lived)(jax.random.key(3))
    ability, raised, group = map(np.asarray, someone)
    return group, ability + raised, raised, np.asarray(eligible), np.asarray(admitted)


@pytest.mark.parametrize(("threshold", "improvement"), [(0.62, 0.0), (0.62, 0.6)])
def test_admission_is_the_law_as_it_is_written_down(threshold, improvement):
    people, rounds = 40_000, 8
    world = make_world("admission", improvement=improvement)
    fast = fast_admission(world, threshold, rounds, people)
    slow = slow_admission(threshold, rounds, people, 0.8, improvement, seed=0)
    for place in (0, 1):
        one, other = ([part[found[0] == place] for part in found] for found in (fast, slow))
        edges = np.linspace(-0.001, 1.1, 12)
        for part in (1, 2):
            counted = [np.histogram(found[part], edges)[0] for found in (one, other)]
            assert distance(*counted) < 0.02
        for part in (lambda x: x[3], lambda x: x[4], lambda x: x[4][x[3]]):
            rate, same = part(one), part(other)
            error = 4 * sqrt(0.25 / len(rate) + 0.25 / len(same))
            assert rate.mean() == pytest.approx(same.mean(), abs=error)
    rates = [fast[4][(fast[0] == g) & fast[3]].mean() for g in (0, 1)]
    assert rates[0] - rates[1] > 0.05  # effort is cheaper for the first: one threshold favours it


def test_effort_stops_at_what_admission_is_worth_and_is_never_seen():
    """With nobody admitted the mean effort has a closed form: again / (2 - again) of the most."""
    world = make_world("admission", again=0.6)
    group, _, raised, _, _ = fast_admission(world, 9.0, 40, 40_000)
    for place, most in ((0, 0.2), (1, 0.1)):
        own = raised[group == place]
        assert own.max() <= most
        assert own.mean() == pytest.approx(most * 0.6 / 1.4, rel=0.02)
        assert (own == 0).mean() == pytest.approx(0.4, abs=0.01)
    assert world.columns == ("score", "group = advantaged", "group = disadvantaged")


def test_eligible_is_a_normal_distribution_s_share():
    world = make_world("admission", noise=0.08, improvement=0.5)
    someone = world.arriving(jax.random.key(0), (50,))._replace(raised=jnp.full(50, 0.1))
    ability = np.asarray(someone.ability, float) + 0.05
    exact = [0.5 * (1 + erf((x - 0.55) / 0.08 / sqrt(2))) for x in ability]
    np.testing.assert_allclose(np.asarray(world.label_chance(someone)), exact, atol=1e-5)


@pytest.mark.parametrize(
    ("name", "settings", "message"),
    [
        ("attention", {"rates": {"alone": 1.0}}, "give two locations or more"),
        ("attention", {"rates": [1, 2]}, "give two locations or more"),
        ("attention", {"rates": {"a": 1.0, "b": 2.0}}, "the rate of 'b' is 2"),
        ("attention", {"dynamic_rate": 0.2}, "dynamic_rate is 0.2"),
        ("admission", {"costs": {"alone": 1.0}}, "give two groups or more"),
        ("admission", {"costs": {"a": 1.0, "b": 0.0}}, "the cost of effort of 'b' is 0"),
        ("admission", {"again": 1.5}, "again is 1.5"),
        ("admission", {"improvement": -1}, "improvement is -1"),
        ("admission", {"noise": 0}, "noise is 0"),
        ("admission", {"drift": {"label": 1.0}}, "drift is not possible in it"),
    ],
)
def test_mistakes_are_named(name, settings, message):
    with pytest.raises(InputError, match=message):
        make_world(name, **settings)


def test_more_groups_are_named_in_order_and_made_again_from_a_run_s_folder():
    rates = {"d": 1.6, "a": 1.2, "c": 0.8, "b": 0.6, "e": 0.3}
    assert make_world("attention", rates=rates).groups == ("a", "b", "c", "d", "e")
    costs = {"z": 2.0, "m": 4.0, "a": 8.0}
    assert make_world("admission", costs=costs).groups == ("a", "m", "z")


def test_the_frontier_of_attention_is_found_and_that_of_admission_refused(capsys):
    found = sellf.plan(make_world("attention", population=200, horizon=400), "opportunity", 0.05)
    assert found.disparity.max() <= 0.05 + 1e-6
    free = sellf.plan(make_world("attention", population=200, horizon=400), "opportunity", 1.0)
    assert free.reward > found.reward
    assert main(["frontier", "admission"]) == 2
    assert "without a table of people" in capsys.readouterr().err
