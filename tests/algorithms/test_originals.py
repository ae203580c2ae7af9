"""The baselines against slow versions of what their original codes compute.

POCAR: ericyangyu/pocar; ELBERT: Yuancheng-Xu/ELBERT; FOCOPS: ymzhang01/focops; PPO-Lagrangian,
PID-Lagrangian and CUP: PKU-Alignment/omnisafe.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sellf.algorithms import (
    catalogue,
    cup,
    elbert,
    focops,
    lagrangian,
    losses,
    pocar,
    published,
    sellf,
)
from sellf.algorithms.algorithm import Critique
from sellf.algorithms.seen import see
from sellf.envs import window as windows
from sellf.envs import world as worlds
from sellf.envs.policy import of_chances
from sellf.envs.worlds import make_world
from tests.algorithms.rollouts import batch_of, seen_of, task_of

WORLD = make_world("lending", population=300, window=200)
STEPS = 64


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def f32(values):
    return jnp.asarray(values, jnp.float32)


def rollout_of(rng, **changes):
    """Return a rollout of random people, two episodes long."""
    profile = rng.integers(0, WORLD.profiles, STEPS)
    action = rng.integers(0, 2, STEPS)
    seen = seen_of(WORLD.space, profile, profile, action, (action & rng.integers(0, 2, STEPS)) > 0)
    over = np.zeros(STEPS, bool)
    over[[30, STEPS - 1]] = True
    return seen._replace(truncated=jnp.asarray(over), **changes)


def critique_of(rng, critics):
    advantage, target = rng.normal(size=(2, STEPS, critics)) * 3
    return Critique(f32(advantage), f32(target))


def test_pocar_charges_each_decision_with_its_own_increase_in_a_window_worked_out_by_hand():
    """A window of four decisions about people with good labels, two of each group.

    It begins with a: accepted, rejected; b: accepted, rejected; so 1/2 and 1/2. Then, each in place
    of the oldest:
    - a is accepted in place of a's acceptance: 1/2 and 1/2, as before;
    - a is accepted in place of a's rejection: 1 and 1/2, so 0.5, an increase of 0.5;
    - b is rejected in place of b's acceptance: 1 and 0, so 1, an increase of 0.5;
    - b is accepted in place of b's rejection: 1 and 1/2, so 0.5, a decrease.
    """
    world = make_world("lending", population=4, window=4)
    a, b = 9, 19  # the best score of each group
    begin = [(0, 1), (0, 0), (1, 1), (1, 0)]

    def entry(group, action):
        one = jnp.ones((), jnp.int32)
        return windows.entry(world.space, one * group, one * action, one, one)

    reset, advance = jax.jit(worlds.reset), jax.jit(worlds.advance, static_argnums=4)
    state = reset(world, jax.random.key(0))._replace(
        profile=jnp.asarray([a, a, b, b], jnp.int32),
        window=windows.of_entries(world.space, jnp.stack([entry(*one) for one in begin])),
        person=jnp.zeros((), jnp.int32),
    )
    steps = []
    for person, action in enumerate((1, 1, 0, 1)):
        chance = worlds.draws(world, jax.random.key(1))._replace(
            label=jnp.zeros(()), person=jnp.asarray((person + 1) % 4, jnp.int32)
        )
        state, step = advance(world, state, jnp.asarray(action), chance, "opportunity")
        steps.append(step)
    steps = jax.tree.map(lambda *leaves: jnp.stack(leaves), *steps)
    policy = of_chances(lambda p: jnp.full(p.shape, 0.5))
    seen = see(world.space, steps, policy, "opportunity", "true")
    np.testing.assert_allclose(seen.disparity, [0, 0.5, 1, 0.5], atol=1e-6)
    np.testing.assert_allclose(seen.before, [0, 0, 0.5, 1], atol=1e-6)
    terms = np.asarray(pocar.terms(seen, 0.05))
    np.testing.assert_allclose(terms[:, 0], [0, -0.45, -0.95, -0.45], atol=1e-6)
    np.testing.assert_allclose(terms[:, 1], [0, -0.5, -0.5, 0], atol=1e-6)


def test_pocar_s_advantage_is_the_original_s(rng):
    now, before = rng.uniform(0, 0.2, (2, STEPS)).astype(np.float32)
    seen, critique = rollout_of(rng, disparity=f32(now), before=f32(before)), critique_of(rng, 1)
    config = pocar.POCAR(beta_disparity=5.0, beta_increase=2.0, omega=0.05)
    result = pocar.weigh(task_of(WORLD, "accuracy"), config, (), seen, critique)
    batch = batch_of(WORLD.space, seen.group, now, now, result.columns, {})

    def scaled(x):
        return (x - x.min()) / (x.max() - x.min() + 1e-8)

    above = np.minimum(0, -now + 0.05)
    increase = np.minimum(0, (now > 0.05) * (before - now))
    total = scaled(np.asarray(critique.advantage[:, 0])) + 5 * scaled(above) + 2 * scaled(increase)
    expected = (total - total.mean()) / (total.std(ddof=1) + 1e-8)
    np.testing.assert_allclose(pocar.advantage(config, batch), expected, rtol=1e-3, atol=1e-4)
    # SELLF's second term is the same one, from half of omega on.
    ours = sellf.SELLF(beta_disparity=5.0, beta_increase=2.0, omega=0.1)
    result = sellf.weigh(task_of(WORLD, "accuracy"), ours, (), seen, critique)
    batch = batch_of(WORLD.space, seen.group, now, now, result.columns, {})
    np.testing.assert_allclose(sellf.advantage(ours, batch), expected, rtol=1e-3, atol=1e-4)


def test_focops_standardises_both_advantages_as_the_original_does(rng):
    seen, critique = rollout_of(rng), critique_of(rng, 2)
    config = focops.FOCOPS()
    task = task_of(WORLD, "accuracy")
    result = focops.weigh(task, config, {"nu": jnp.zeros(())}, seen, critique)
    for name, column in zip(("advantage", "cost_advantage"), critique.advantage.T, strict=True):
        own = np.asarray(column)
        for _ in range(2):  # the original does it twice
            own = (own - own.mean()) / (own.std() + 1e-6)
        # Its deviation is the population's, ours the sample's: 1 / (2 n) apart.
        np.testing.assert_allclose(result.columns[name], own, rtol=1 / STEPS, atol=1e-4)


def slow_elbert(supply, demand, advantages, beta):
    """Return the original's fair advantage of a minibatch; one row of advantages per signal."""
    groups = len(supply)
    each = [(x - x.mean()) / (x.std(ddof=1) + 1e-8) for x in advantages]
    ratio = supply / demand
    bias, sign = ratio.max() - ratio.min(), np.ones(groups)
    sign[ratio.argmin()] = -1
    fair = each[0].copy()
    for g in range(groups):
        along = each[1 + g] / demand[g] - supply[g] / demand[g] ** 2 * each[1 + groups + g]
        fair -= beta * 2 * bias * sign[g] * along
    return fair


@pytest.mark.parametrize("critics", [False, True])
def test_elbert_s_advantage_is_the_original_s(rng, critics):
    seen = rollout_of(rng)
    config = elbert.ELBERT(beta_bias=50.0, fairness_critics=critics)
    task = task_of(WORLD, "accuracy")
    signal, _ = elbert.signals(task, config, (), seen)
    assert signal.shape == (STEPS, 5 if critics else 1)
    critique = critique_of(rng, signal.shape[1])
    result = elbert.weigh(task, config, (), seen, critique)
    group, action = np.asarray(seen.group), np.asarray(seen.action)
    positive = np.asarray(seen.positive)
    # The rollout has two episodes.
    demand = np.array([(action * (group == g)).sum() / 2 for g in (0, 1)])
    supply = np.array([(positive * (group == g)).sum() / 2 for g in (0, 1)])
    np.testing.assert_allclose(result.figures["demand"], demand)
    np.testing.assert_allclose(result.figures["supply"], supply)
    advantages = np.asarray(result.columns["advantages"], float)
    if critics:
        np.testing.assert_array_equal(advantages, critique.advantage)
    batch = batch_of(
        WORLD.space, group, advantages[:, 0], advantages[:, 0], result.columns, result.figures
    )
    expected = slow_elbert(supply, demand, advantages.T, 50.0)
    np.testing.assert_allclose(elbert.advantage(config, batch), expected, rtol=1e-3, atol=1e-3)


def test_elbert_has_no_critics_of_supply_and_demand_where_the_two_are_the_same(rng):
    """Opportunity: the original's advantage is the reward's, whatever its critics say."""
    seen, task = rollout_of(rng), task_of(WORLD, "opportunity")
    algorithm, config = catalogue.resolve("elbert", {"beta_bias": 1e5}, "opportunity")
    assert algorithm.stacks(WORLD.space)[0].critics == 1
    assert catalogue.resolve("elbert", {}, "accuracy")[0].stacks(WORLD.space)[0].critics == 5
    signal, _ = algorithm.signals(task, config, (), seen)
    critique = critique_of(rng, signal.shape[1])
    result = algorithm.weigh(task, config, (), seen, critique)
    supply, demand = (np.asarray(result.figures[name]) for name in ("supply", "demand"))
    own = np.asarray(critique.advantage[:, 0])
    batch = batch_of(WORLD.space, seen.group, own, own, result.columns, result.figures)
    others = rng.normal(size=(4, STEPS))
    expected = slow_elbert(supply, demand, np.vstack([own, others]), 1e5)
    np.testing.assert_allclose(algorithm.advantage(config, batch), expected, rtol=1e-3, atol=1e-4)


def test_elbert_has_critics_for_opportunity_where_a_rejection_can_reveal_the_outcome():
    told = eqx.tree_at(lambda s: s.group, WORLD.space, WORLD.space.group)
    object.__setattr__(told, "reveals", (True, True))
    assert elbert.can_differ(told, "opportunity")
    assert not elbert.can_differ(WORLD.space, "opportunity")


def test_elbert_without_critics_has_the_advantages_of_a_constant_one(rng):
    seen = rollout_of(rng)
    config = elbert.ELBERT(fairness_critics=False)
    task = task_of(WORLD, "accuracy")
    result = elbert.weigh(task, config, (), seen, critique_of(rng, 1))
    signal = np.concatenate([np.asarray(x) for x in elbert.counted(task, seen)], axis=1)
    over = np.asarray(seen.truncated)
    expected, later = np.zeros_like(signal), np.zeros(4)
    for t in reversed(range(STEPS)):
        # A critic of mean / (1 - gamma) everywhere: r + gamma V - V = r - mean.
        value = signal.mean(axis=0) / (1 - 0.99)
        surprise = signal[t] + 0.99 * value - value
        later = surprise + (0 if over[t] else 0.99 * 0.95) * later
        expected[t] = later
    np.testing.assert_allclose(result.columns["advantages"][:, 1:], expected, rtol=1e-3, atol=1e-3)


def test_elbert_has_no_bias_where_only_one_group_has_a_demand():
    slopes = jax.grad(elbert.squared_bias, argnums=(0, 1))
    for demand in ([3.0, 0.0], [0.0, 0.0]):
        assert float(elbert.squared_bias(f32([1.0, 0.0]), f32(demand))) == 0
        for slope in slopes(f32([1.0, 0.0]), f32(demand)):
            np.testing.assert_array_equal(slope, [0, 0])


def test_ppo_lagrangian_s_multiplier_takes_adam_s_steps_and_stays_above_0():
    config = lagrangian.Lagrangian(omega=0.05)
    kept = lagrangian.start(task_of(WORLD, "accuracy"), config, jax.random.key(0))["multiplier"]
    value, first, second = 0.001, 0.0, 0.0
    for k, cost in enumerate([0.3, 0.2, 0.01, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0], start=1):
        kept = lagrangian.ascend(kept, f32(cost), config)
        slope = -(cost - 0.05)
        first, second = 0.9 * first + 0.1 * slope, 0.999 * second + 0.001 * slope**2
        value -= 0.035 * (first / (1 - 0.9**k)) / (np.sqrt(second / (1 - 0.999**k)) + 1e-8)
        value = max(value, 0.0)
        np.testing.assert_allclose(kept.parameters[0], value, rtol=1e-4, atol=1e-6)


def test_pid_lagrangian_s_controller_is_omnisafe_s():
    config = lagrangian.PIDLagrangian(omega=0.05)
    extra = lagrangian.start_controlled(task_of(WORLD, "accuracy"), config, jax.random.key(0))
    kept = extra["control"]
    total, error, smooth, past = 0.001, 0.0, 0.0, [0.0]
    for cost in np.concatenate([np.linspace(0.4, 0.0, 20), np.linspace(0.0, 0.3, 20)]):
        kept, got = lagrangian.control(kept, f32(cost), config)
        delta = cost / 0.05 - 1  # omnisafe's cost and limit, in units of the limit
        total = max(0.0, total + 0.01 * delta)
        error = 0.95 * error + 0.05 * delta
        smooth = 0.95 * smooth + 0.05 * cost / 0.05
        expected = max(0.0, 0.1 * error + total + 0.01 * max(0.0, smooth - past[0]))
        past = [*past, smooth][-10:]
        np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-5)


def test_a_shaped_cost_has_the_advantages_of_a_critic_that_knows_the_disparity(rng):
    """With V = Delta / (1 - gamma): c + gamma V' - V = (Delta_t - Delta_{t-1}) / (1 - gamma)."""
    before, now = rng.uniform(0, 0.4, (2, STEPS)).astype(np.float32)
    seen, task = rollout_of(rng, disparity=f32(now), before=f32(before)), task_of(WORLD, "accuracy")
    shaped, gamma = lagrangian.signals(task, lagrangian.Lagrangian(), (), seen)
    surprise = now + 0.99 * now / (1 - 0.99) - before / (1 - 0.99)
    np.testing.assert_allclose(shaped[:, 1] / (1 - 0.99), surprise, rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(gamma, [1.0, 0.99])
    plain, _ = lagrangian.signals(task, lagrangian.Lagrangian(shaped=False), (), seen)
    np.testing.assert_array_equal(plain[:, 1], now)


def test_lagrangian_advantages_weigh_reward_against_cost(rng):
    critique, task = critique_of(rng, 2), task_of(WORLD, "accuracy")
    seen = rollout_of(rng, disparity=jnp.full(STEPS, 0.3))
    gain, cost = ((x - x.mean()) / x.std(ddof=1) for x in np.asarray(critique.advantage).T)
    for config, start, weigh in (
        (lagrangian.Lagrangian(), lagrangian.start, lagrangian.weigh),
        (
            lagrangian.PIDLagrangian(),
            lagrangian.start_controlled,
            lagrangian.weigh_controlled,
        ),
    ):
        result = weigh(task, config, start(task, config, jax.random.key(0)), seen, critique)
        price = float(result.figures["multiplier"])
        assert price > 0
        expected = (gain - price * cost) / (1 + price)
        np.testing.assert_allclose(result.columns["advantage"], expected, rtol=1e-3, atol=1e-4)


def test_cup_s_projection_is_the_original_s_and_its_multiplier_has_a_limit(rng):
    kl, log_ratio, cost = rng.random((3, 30))
    expected = (0.7 * np.exp(log_ratio) * cost + kl).mean()
    got = losses.projection(*(f32(x) for x in (kl, log_ratio, cost, 0.7)))
    assert float(got) == pytest.approx(expected, rel=1e-5)
    config, task = cup.CUP(multiplier_limit=0.01), task_of(WORLD, "accuracy")
    extra = lagrangian.start(task, config, jax.random.key(0))
    seen = rollout_of(rng, disparity=jnp.full(STEPS, 0.3))
    result = cup.weigh(task, config, extra, seen, critique_of(rng, 2))
    assert float(result.figures["multiplier"]) == pytest.approx(0.01)


def test_cup_s_second_pass_is_omnisafe_s_and_both_critics_learn_in_it(rng):
    """lambda (1 - gamma l) / (1 - gamma) ratio A_cost + KL(new || after the first pass)."""
    logit, before = rng.normal(size=(2, STEPS))
    action = rng.integers(0, 2, STEPS)
    decided, cost, values, target = rng.normal(size=(4, STEPS))
    config = cup.CUP(cost_gamma=0.99, gae_lambda=0.95, value=0.5)
    batch = batch_of(
        WORLD.space, np.zeros(STEPS, int), f32(logit), f32(before), {"cost_advantage": f32(cost)},
        {"multiplier": f32(0.3)},
    )._replace(
        action=jnp.asarray(action),
        log_probability=f32(decided),
        values=f32([values, 2 * values]),
        target=f32(np.stack([target, target], axis=1)),
    )  # fmt: skip
    new, old = 1 / (1 + np.exp(-logit)), 1 / (1 + np.exp(-before))
    ratio = np.exp(np.log(np.where(action, new, 1 - new)) - decided)
    kl = new * np.log(new / old) + (1 - new) * np.log((1 - new) / (1 - old))
    coefficient = (1 - 0.99 * 0.95) / (1 - 0.99)
    policy = (0.3 * coefficient * ratio * cost + kl).mean()
    critics = ((values - target) ** 2).mean() + ((2 * values - target) ** 2).mean()
    assert float(cup.project(config, batch)) == pytest.approx(policy + 0.5 * critics, rel=1e-3)


def test_subsets_are_uniform_and_never_hold_one_twice():
    chosen, there = published.subsets(jax.random.key(0), 6000, 3, jnp.asarray(5))
    rows = np.sort(np.asarray(chosen).T, axis=1)
    assert there.all()
    assert (np.diff(rows, axis=1) > 0).all()
    often = np.unique(rows, axis=0, return_counts=True)[1]
    assert len(often) == 10
    assert np.abs(often / 6000 - 0.1).max() < 0.02
    few, there = published.subsets(jax.random.key(0), 50, 3, jnp.asarray(2))
    assert np.asarray(there).tolist() == [False, True, True]
    assert (np.sort(np.asarray(few)[1:], axis=0).T == [0, 1]).all()


def test_published_figures_of_overlap_by_hand(rng):
    """Two policies, both always drawn: then nothing is left to chance."""
    policies = np.zeros((5, 4))
    policies[:2] = rng.uniform(0.1, 0.9, (2, 4))
    group, profile = np.array([0, 0, 1, 1]), rng.integers(0, 4, 200)
    minibatches = rng.integers(0, 4, (3, 8))
    found = jax.jit(published.overlap, static_argnums=(3, 7))(
        jax.random.key(0), f32(policies), jnp.asarray(2), 5, jnp.asarray(profile),
        jnp.asarray(minibatches), jnp.asarray(group), 2,
    )  # fmt: skip
    before = 1 - (1 - policies[0]) * (1 - policies[1])
    rejected = 1 - policies[1]
    for g in (0, 1):
        mine = profile[group[profile] == g]
        learned = minibatches[group[minibatches] == g]
        r, a = rejected[mine].mean(), before[mine].mean()
        d2 = a / r**2 * (rejected[mine] ** 2 / before[mine]).mean()
        expected = {
            "published_largest_weight": (rejected / before)[learned].max(),
            "published_smallest_acceptance": before[mine].min(),
            "published_divergence": r * d2,
        }
        for name, value in expected.items():
            np.testing.assert_allclose(found[name][g], value, rtol=1e-4)
