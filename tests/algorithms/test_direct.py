"""SELLF-direct: the disparity as a function of the policy, its price, and what can be promised."""

from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sellf
from sellf.algorithms import direct, guard
from sellf.algorithms.catalogue import resolve
from sellf.algorithms.seen import newest_first
from sellf.envs.policy import Categorical, of_chances
from sellf.envs.worlds import make_world
from sellf.fairness import Counts, utility
from tests.algorithms.rollouts import batch_of, seen_of, task_of

WORLD = make_world("lending", population=300, window=200)
WORLDS = {2: WORLD, 4: make_world("lending", groups="all", population=300, window=200)}
# Compiled as a whole: operation by operation every test would compile dozens of small programs.
shares, anchored, earnings, credits, errors_of, bounds_of, bias_of = (
    eqx.filter_jit(f)
    for f in (
        direct.shares,
        direct.anchored,
        direct.earnings,
        direct.credits,
        guard.errors,
        guard.utilities,
        guard.bias,
    )
)
RECALL, STEPS = 3, 128
MOVED = ["opportunity", "accuracy", "predictive-parity", "false-positive-rate"]
"""Notions that a decision itself changes."""
SHORT = {"steps": 1024, "rollout": 256, "epochs": 2, "progress": False}
SMALL = {"population": 300, "window": 200}


def chances(seed, world=WORLD):
    table = jax.random.uniform(jax.random.key(seed), (world.profiles,), minval=0.05, maxval=0.95)
    return lambda profile: table[profile]


def recalled(seed, world=WORLD):
    rng = np.random.default_rng(seed)
    profile = rng.integers(0, world.profiles, (RECALL, STEPS))
    label = rng.choice([-1.0, 0.0, 1.0], (RECALL, STEPS))
    label[-1] = direct.NOBODY
    return direct.Recalled(jnp.asarray(profile, jnp.int32), jnp.asarray(label, jnp.float32))


def slow_utilities(notion, people, predict, accept, world=WORLD):
    """Count everyone one by one, with chances in place of decisions, as `fairness` would."""
    counts = np.zeros((4, len(world.groups)))
    for profile, known in zip(people.profile.ravel(), people.label.ravel(), strict=True):
        if known == direct.NOBODY:
            continue
        group = int(world.group[profile])
        good = float(known) if known >= 0 else float(predict(profile))
        chance = float(accept(profile))
        counts[:, group] += [1, chance, chance * good, (1 - chance) * good]
    return utility(notion, Counts(*counts))


@pytest.mark.parametrize("groups", WORLDS)
@pytest.mark.parametrize("notion", MOVED)
def test_utilities_are_those_of_everyone_recalled_with_chances_for_decisions(notion, groups):
    world = WORLDS[groups]
    people, predict, accept = recalled(0, world), chances(1, world), chances(2, world)
    found, *_ = shares(task_of(world, notion), people, predict, of_chances(accept))
    slow = slow_utilities(notion, people, predict, accept, world)
    np.testing.assert_allclose(found[0], slow, rtol=1e-5)


@pytest.mark.parametrize("semi", [False, True])
@pytest.mark.parametrize("groups", WORLDS)
@pytest.mark.parametrize("notion", ["opportunity", "accuracy"])
def test_minibatches_of_one_pass_together_give_the_utilities_after_a_change(notion, groups, semi):
    """The newest rollout alone is recalled here, so that a pass covers everyone."""
    world, config = WORLDS[groups], direct.Direct(semi_stochastic=semi)
    people = direct.Recalled(*(leaf[:1] for leaf in recalled(3, world)))
    predict, before, after = (chances(seed, world) for seed in (4, 5, 6))
    logits = [(lambda profile, c=c: jax.scipy.special.logit(c(profile))) for c in (before, after)]

    def decided(chance):
        """Reject for certain whom a semi-stochastic policy rejects for certain."""
        return lambda profile: jnp.where(
            chance(profile) < (0.25 if semi else 0), 0, chance(profile)
        )

    policy = of_chances(decided(before))
    utilities, columns, figures = shares(task_of(world, notion), people, predict, policy)
    figures["utilities"] = utilities.reshape(-1)
    profile = people.profile.ravel()

    def utilities_after(some):
        own = {name: column[some] for name, column in columns.items()}
        old, new = (logit(profile[some]) for logit in logits)
        group = world.group[profile[some]]
        return anchored(config, batch_of(world.space, group, new, old, own, figures))

    batches = [utilities_after(slice(i, i + 32)) for i in range(0, STEPS, 32)]
    expected = slow_utilities(notion, people, predict, decided(after), world)
    np.testing.assert_allclose(np.mean(batches, axis=0)[0], expected, rtol=1e-4)


def test_whoever_is_rejected_for_certain_can_still_be_brought_back():
    config, logit = direct.Direct(semi_stochastic=True), jnp.asarray([-3.0, 0.5])

    def chance(x):
        space = WORLD.space
        return direct.chance(config, space, Categorical(x[None]), space.favourable)

    np.testing.assert_allclose(chance(logit), [0, jax.nn.sigmoid(0.5)], rtol=1e-6)
    slope = jax.grad(lambda x: jnp.sum(chance(x)))(logit)
    np.testing.assert_allclose(slope, jax.vmap(jax.grad(jax.nn.sigmoid))(logit), rtol=1e-6)


def test_a_group_of_nobody_follows_the_others_as_they_change():
    columns = {"slope": np.array([[1.0, 0.0]] * 4, np.float32)}
    figures = {"utilities": jnp.asarray([0.5, 0.5]), "mass": jnp.asarray([1.0, 0.0])}
    group = np.zeros(4, np.int32)
    batch = batch_of(WORLD.space, group, jnp.full(4, 3.0), jnp.zeros(4), columns, figures)
    now = anchored(direct.Direct(), batch)
    assert now[0, 0] > 0.9
    assert now[0, 0] == now[0, 1]


@pytest.mark.parametrize("notion", MOVED)
def test_the_gradient_of_the_penalty_is_that_of_the_disparity(notion):
    people = direct.Recalled(*(leaf[:1] for leaf in recalled(7)))
    predict, accept = chances(8), chances(9)
    policy = of_chances(accept)
    utilities, columns, figures = shares(task_of(WORLD, notion), people, predict, policy)
    figures |= {
        "utilities": utilities.reshape(-1),
        "target": jnp.asarray(0.0),
        "multiplier": jnp.asarray(1.5),
        "renyi_scale": jnp.ones(2),
    }
    profile = people.profile.ravel()
    old = jax.scipy.special.logit(accept(profile))
    columns["revealed_before"] = np.ones(STEPS, np.float32)
    config = direct.Direct(beta_renyi=0.0)

    def penalty(x):
        return direct.penalty(
            config, batch_of(WORLD.space, WORLD.group[profile], x, old, columns, figures)
        )

    gradient = jax.jit(jax.grad(penalty))(old)

    def disparity(shift, person):
        """Move one person's chance and count again."""
        moved = np.asarray(jax.nn.sigmoid(old)).astype(float)
        moved[person] = 1 / (1 + np.exp(-(float(old[person]) + shift)))
        counts = np.zeros((4, 2))
        for j, p in enumerate(profile):
            known = float(people.label.ravel()[j])
            good = known if known >= 0 else float(predict(p))
            change = [1, moved[j], moved[j] * good, (1 - moved[j]) * good]
            counts[:, int(WORLD.group[p])] += change
        return np.ptp(utility(notion, Counts(*counts)))

    for person in (0, 17, 63, 127):
        slope = 1.5 * (disparity(1e-3, person) - disparity(-1e-3, person)) / 2e-3
        np.testing.assert_allclose(gradient[person], slope, atol=2e-6, rtol=2e-3)


def test_the_floor_is_under_what_everyone_recalled_earns():
    """The newest rollout alone is recalled: its gradient can be counted person by person."""
    people = direct.Recalled(*(leaf[:1] for leaf in recalled(10)))
    predict, accept = chances(11), chances(12)
    columns, figures = earnings(
        task_of(WORLD, "qualification"), people, predict, of_chances(accept)
    )
    profile, known = people.profile.ravel(), np.asarray(people.label.ravel())
    gain = np.where(known >= 0, known, predict(profile)) - WORLD.cost
    chance = np.asarray(accept(profile))
    np.testing.assert_allclose(figures["earned"], np.mean(chance * gain), rtol=1e-5)

    old = jax.scipy.special.logit(accept(profile))
    columns["revealed_before"] = np.ones(STEPS, np.float32)

    def push(earned):
        figures = {
            "earned": jnp.asarray(earned, jnp.float32),
            "floor": jnp.asarray(7.0),
            "renyi_scale": jnp.ones(2),
        }
        config = direct.Direct(beta_renyi=0.0)
        group = WORLD.group[profile]
        return jax.grad(
            lambda x: direct.penalty(config, batch_of(WORLD.space, group, x, old, columns, figures))
        )(old)

    expected = -7.0 * gain * chance * (1 - chance) / STEPS
    np.testing.assert_allclose(push(-0.1), expected, rtol=1e-3, atol=1e-7)
    np.testing.assert_array_equal(push(0.1), np.zeros(STEPS))


def test_people_not_met_yet_earn_nothing():
    people = recalled(13)
    known = direct.Recalled(*(leaf[:-1] for leaf in people))
    task, predict = task_of(WORLD, "qualification"), chances(14)
    whole, part = (
        earnings(task, p, predict, of_chances(chances(15)))[1]["earned"] for p in (people, known)
    )
    np.testing.assert_allclose(whole, part, rtol=1e-6)


def test_a_decision_is_credited_with_what_it_did_to_the_person():
    rng = np.random.default_rng(1)
    profile = jnp.asarray(rng.integers(0, WORLD.profiles, 200), jnp.int32)
    group = WORLD.group[profile]
    # Everyone moves to some other profile of their own group.
    offset = jnp.asarray(rng.integers(0, 10, 200), jnp.int32)
    same = [jnp.flatnonzero(WORLD.group == g) for g in (0, 1)]
    moved = jnp.where(group == 0, same[0][offset], same[1][offset]).astype(jnp.int32)
    false = jnp.zeros(200, jnp.bool_)
    predict = chances(3)
    number = jnp.asarray([jnp.sum(group == g) for g in (0, 1)], jnp.float32)
    worse = Counts(number, 0 * number, 0 * number, jnp.asarray([0.2, 0.6]) * number)
    seen = seen_of(WORLD.space, profile, moved, false, false, worse)
    task = task_of(WORLD, "qualification")
    utilities, up = credits(task, seen, predict, "up")
    _, both = credits(task, seen, predict, "both")
    np.testing.assert_allclose(utilities, [[0.2, 0.6]], rtol=1e-6)
    change = np.asarray(predict(moved) - predict(profile))
    worse = np.asarray(group == 0)
    for g, sign, credit in ((worse, 1, up), (worse, 1, both), (~worse, -1, both)):
        expected = sign * (change[g] - change[g].mean()) * 200 / g.sum()
        np.testing.assert_allclose(np.asarray(credit["credit"])[g], expected, atol=1e-5)
    assert not np.asarray(up["credit"])[~worse].any()


@given(st.lists(st.floats(0, 1, width=32), min_size=2, max_size=6), st.data())
def test_a_group_of_nobody_decides_nothing(values, data):
    there = data.draw(st.lists(st.booleans(), min_size=len(values), max_size=len(values)))
    utilities = jnp.where(jnp.asarray(there), jnp.asarray(values, jnp.float32), jnp.nan)
    filled = np.asarray(direct.absent(utilities, jnp.asarray(there, jnp.float32)))
    assert np.isfinite(filled).all()
    known = np.asarray(values, np.float32)[np.asarray(there)]
    expected = np.ptp(known) if len(known) else 0.0
    np.testing.assert_allclose(np.ptp(filled), expected, atol=1e-6)


def looked_up(table, profile):
    return table[profile]


def simulate(rng, notion, people, chance, alpha, predicted):
    """Return the errors of one rollout in a world of four kinds of people, two in each group.

    And the true sums above and below the line of each group's utility, over whom it met.
    """
    kind = rng.integers(0, 4, people)
    action = rng.random(people) < chance[kind]
    positive = action & (rng.random(people) < alpha[kind])
    # The first two profiles of each group stand for the kinds.
    profile = jnp.asarray(kind % 2 + 10 * (kind // 2), jnp.int32)
    seen = seen_of(WORLD.space, profile, profile, action, positive)
    table = np.zeros(WORLD.profiles, np.float32)
    table[[0, 1, 10, 11]] = predicted
    drawn = Categorical(jax.scipy.special.logit(jnp.asarray(chance[kind], jnp.float32))[None])
    found = errors_of(notion, WORLD.space, seen, drawn, jax.tree_util.Partial(looked_up, table))
    pi, p = chance[kind], alpha[kind]
    above = pi * p if notion == "opportunity" else pi * p + (1 - pi) * (1 - p)
    below = p if notion == "opportunity" else np.ones(people)
    return found, np.array([[x[kind // 2 == g].sum() for x in (above, below)] for g in (0, 1)])


@pytest.mark.parametrize("notion", ["opportunity", "accuracy"])
def test_true_utilities_lie_within_their_bounds_though_policies_follow_what_was_seen(notion):
    rng = np.random.default_rng(0)
    alpha = np.array([0.4, 0.7, 0.5, 0.9])
    held, widths = [], []
    for _ in range(40):
        errors, true = guard.start(notion, 4, 2), np.zeros((2, 2))
        chance, predicted = np.array([0.3, 0.8, 0.2, 0.9]), np.array([0.55, 0.7, 0.45, 0.85])
        for _ in range(4):
            new, sums = simulate(rng, notion, 700, chance, alpha, predicted)
            errors, true = newest_first(errors, new), true + sums
            # Who seems to be wrong about people accepts more of them, and predicts otherwise.
            tilt = float(np.sign(np.sum(new.first)))
            chance = np.clip(chance + 0.1 * tilt, 0.1, 0.9)
            predicted = np.clip(predicted + 0.05 * tilt, 0.05, 0.95)
        _, low, high = bounds_of(errors, jnp.asarray(0.05))
        truth = true[:, 0] / true[:, 1]
        held.append((np.asarray(low[0]) <= truth).all() and (truth <= np.asarray(high[0])).all())
        widths.append(np.mean(high - low))
    assert np.mean(held) >= 0.95
    assert np.mean(widths) < (0.75 if notion == "opportunity" else 0.35)


@pytest.mark.parametrize("notion", ["opportunity", "accuracy"])
def test_errors_that_cancel_among_the_rejected_are_not_forgotten(notion):
    """(1 - pi) (phi - p) cancels in the first group; what a policy of chances comes to does not."""
    chance = np.array([0.9, 0.1, 0.9, 0.1])
    alpha = np.array([0.95, 0.05, 0.3, 0.6])
    predicted = np.array([0.05, 0.15, 0.3, 0.6])
    found, sums = simulate(np.random.default_rng(1), notion, 100_000, chance, alpha, predicted)
    bias, promise = bias_of(newest_first(guard.start(notion, 1, 2), found), jnp.asarray(0.05))
    real = np.ptp(sums[:, 0] / sums[:, 1])
    assert real > 0.4
    assert real <= float(promise) < real + 0.1
    assert float(bias) > 0.25


def test_nobody_met_is_nothing_known():
    _, low, high = bounds_of(guard.start("accuracy", 2, 3), jnp.asarray(0.05))
    assert np.asarray(low).tolist() == [[0, 0, 0]]
    assert np.asarray(high).tolist() == [[1, 1, 1]]
    assert float(guard.promise(low, high)) == 1


@pytest.fixture(scope="module")
def agent():
    settings = {"dual_start": 0.004, "dual_rate": 0.5, "dual_limit": 0.01}
    return sellf.train("lending", world_settings=SMALL, **SHORT, **settings)


def test_lambda_follows_the_constraint_within_its_limits(agent):
    """Every step of lambda is eta (gap - target), cut off at 0 and at the ceiling."""
    before = 0.004
    for row in agent.history:
        np.testing.assert_allclose(row["dual_step"], 0.5 * (row["gap"] - 0.025), atol=1e-7)
        before = np.clip(before + row["dual_step"], 0, 0.01)
        np.testing.assert_allclose(row["multiplier"], before, atol=1e-7)


@pytest.mark.parametrize("ceiling", [0.05, 5.0])
def test_the_floor_counts_once_lambda_is_at_its_ceiling_in_vain_or_late(ceiling):
    rise = {"credit_rate": 0.1, "credit_limit": ceiling, "floor": 3.0}
    agent = sellf.train("lending", notion="qualification", world_settings=SMALL, **SHORT, **rise)
    floors = [row["floor"] for row in agent.history]
    assert set(floors) == {0.0, 3.0}
    for i, row in enumerate(agent.history):
        dear = row["multiplier"] > 0.99 * ceiling or i >= 0.75 * len(agent.history)
        assert row["floor"] == (3.0 if row["gap"] > row["target"] and dear else 0.0)


def test_with_a_guard_the_errors_are_taken_off_omega_where_that_leaves_something():
    settings = SHORT | {"guard": True, "omega": 0.6, "rollout": 2048, "steps": 4 * 2048}
    agent = sellf.train("lending", world_settings=SMALL, **settings)
    for row in agent.history:
        room = 0.6 - row["bias"]
        assert row["target"] == pytest.approx(room if room > 0 else 0.3, abs=1e-6)
    # The more people are known, the less is hidden.
    assert agent.history[0]["bias"] > 0.6 > agent.history[-1]["bias"]


@pytest.mark.parametrize(
    "other",
    # Another number of people is another program; the usual one is compiled for other tests too.
    [{}, pytest.param({"estimate": "batch", "people": 64}, marks=pytest.mark.slow)],
)
def test_a_batch_of_people_is_drawn_beside_the_minibatch(other):
    def train(**settings):
        return sellf.train("lending", world_settings=SMALL, **SHORT, omega=0.0, **settings)

    few, many = train(estimate="batch", people=16), train(**other)
    assert not np.array_equal(few.parameters, many.parameters)


@pytest.mark.parametrize("notion", ["opportunity", "accuracy"])
def test_where_nobody_is_ever_accepted_nothing_is_known_of_the_rejected(notion):
    chance, alpha = np.array([0.0, 0.8, 0.5, 0.9]), np.array([0.4, 0.7, 0.5, 0.9])
    found, _ = simulate(np.random.default_rng(1), notion, 20_000, chance, alpha, alpha)
    _, low, high = bounds_of(newest_first(guard.start(notion, 1, 2), found), jnp.asarray(0.05))
    # Half of the first group are certain to be rejected: any of them may have a good label.
    assert high[0, 0] - low[0, 0] > 0.4
    assert high[0, 1] - low[0, 1] < 0.2


def test_a_semi_stochastic_policy_rejects_for_certain_below_a_quarter():
    hooks, _ = resolve("sellf-direct", {"semi_stochastic": True}, "opportunity")
    assert hooks.reject_below == 0.25
    assert resolve("sellf-direct", {}, "opportunity")[0].reject_below == 0


ROW = {"gap": 0.02, "target": 0.025, "bias": 0.02, "promise": 0.04, "multiplier": 0.3}


@pytest.mark.parametrize(
    ("row", "says"),
    [
        ({}, "The constraint is met"),
        ({}, "omega is kept"),
        ({"promise": 0.3, "bias": 0.28}, "cannot be promised"),
        ({"gap": 0.3, "promise": 1.0}, "is still moving"),
        ({"gap": 0.3, "multiplier": 10.0, "promise": 1.0}, "out of reach"),
        ({"gap": 0.037}, "The constraint is met"),
        ({"gap": 0.06, "target": 0.05}, "The constraint is not met"),
    ],
)
def test_the_statement_says_what_became_of_the_constraint(row, says):
    assert says in direct.statement("opportunity", direct.Direct(), [ROW | row] * 12)


def test_the_statement_says_what_a_policy_earns_where_the_constraint_is_out_of_reach():
    row = ROW | {"gap": 0.3, "multiplier": 0.2, "promise": 1.0, "earned": -0.00001}
    said = direct.statement("qualification", direct.Direct(), [row] * 12)
    assert "earn" not in direct.statement(
        "qualification", direct.Direct(), [row] * 3 + [ROW | {"gap": 0.3}]
    )
    assert "out of reach. A thousand decisions earn 0; rejecting everyone earns 0." in said


def test_training_curves_are_drawn(agent):
    pytest.importorskip("matplotlib").use("Agg")
    agent = replace(agent, history=list(agent.history))
    agent.history[1] = {"iteration": 1}  # as after a kill
    assert [axis.get_title() for axis in agent.plot().axes][-1] == "lambda"
    agent.history[:] = [{"iteration": 0}]
    with pytest.raises(ValueError, match="without its metrics"):
        agent.plot()


@pytest.mark.slow
def test_entropy_costs_more_and_more_in_the_last_quarter_and_decisions_become_certain():
    some = {"steps": 16_384, "rollout": 2_048, "learning_rate": 1e-3, "progress": False}
    plain, sharp = (sellf.train("lending", **some, **own) for own in ({}, {"sharpen": 1.0}))
    costs = [row["entropy_cost"] for row in sharp.history]
    np.testing.assert_allclose(costs, [0, 0, 0, 0, 0, 0, 0.5, 1.0])
    assert "entropy_cost" not in plain.history[-1]
    before, after = (
        np.mean(agent.by_profile()[0] * (1 - agent.by_profile()[0])) for agent in (plain, sharp)
    )
    assert after < 0.8 * before


def test_without_it_a_run_keeps_the_name_that_it_had_before_there_was_such_a_setting():
    from sellf.training.spec import from_json, resolve

    def run(**settings):
        own = {"seed": 0, "steps": 100, "world_settings": {}}
        return resolve("lending", "sellf-direct", "opportunity", settings=settings, **own)

    assert "sharpen" not in run().to_json()["settings"]
    sharp = run(sharpen=0.1)
    assert sharp.to_json()["settings"]["sharpen"] == 0.1
    assert from_json(sharp.to_json()) == sharp
