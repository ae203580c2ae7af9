"""Three actions: a world whose best policy is known, and what an algorithm may know of a world."""

import subprocess
import sys
from functools import cache, partial
from importlib.util import find_spec

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import sellf
from sellf.algorithms.algorithm import Algorithm
from sellf.algorithms.catalogue import ALGORITHMS
from sellf.algorithms.config import PPO
from sellf.envs import saving
from sellf.envs import window as windows
from sellf.envs import world as worlds
from sellf.envs.build import Actions, Features, Rules, build
from sellf.envs.policy import Categorical
from sellf.envs.rollout import rollout
from sellf.fairness import VIEWS, utility

GOOD = (0.1, 0.6, 0.95)
"""The chance of a good outcome of three kinds of people; both groups have all of them."""
AMOUNTS = Actions(
    names=("reject", "small", "large"),
    reveals=(False, True, True),
    favourable=(False, True, True),
    gain=((0.0, 0.0), (-0.3, 0.5), (-2.0, 1.0)),
)
BEST = (0, 1, 2)
"""0.6 * 0.5 - 0.4 * 0.3 > 0 > 0.6 - 0.4 * 2; and 0.95 - 0.05 * 2 > 0.95 * 0.5 - 0.05 * 0.3."""


def amounts(shares=((1, 1, 1), (1, 1, 1)), actions=AMOUNTS):
    """Nobody changes; the groups differ in how many of each kind there are."""
    kinds = len(GOOD)
    share = np.array(shares, float).ravel()
    return build(
        "amounts",
        Rules(cost=1.0, horizon=512, population=300, window=300),
        groups=["a", "b"],
        group=np.repeat([0, 1], kinds),
        alpha=np.tile(GOOD, 2),
        moves=np.broadcast_to(np.arange(2 * kinds)[:, None, None], (2 * kinds, 3, 2)).copy(),
        share=share / share.sum(),
        features=Features(
            changing=np.tile(np.arange(kinds), 2),
            changes=np.eye(kinds),
            changing_names=[f"kind {i}" for i in range(kinds)],
        ),
        actions=actions,
    )


FAST = {"learning_rate": 3e-3, "progress": False, "rollout": 512, "batch": 128}


@cache
def trained(algorithm):
    settings = {"beta_renyi": 0.0, "omega": 0.2} if algorithm == "sellf-direct" else {}
    return sellf.train(amounts(), algorithm, steps=20_000, **FAST, **settings)


@pytest.mark.parametrize("algorithm", ["ppo", "sellf-direct"])
def test_the_best_of_three_actions_is_found_for_everyone(algorithm):
    """Both groups are alike, so that the best policy is within every constraint."""
    agent = trained(algorithm)
    chance = np.asarray(Categorical(jnp.asarray(agent.tables()[0])).probabilities())
    assert chance.argmax(axis=0).tolist() == [*BEST, *BEST]
    assert chance.max(axis=0).min() > 0.8
    earned = [0, 0.6 * 0.5 - 0.4 * 0.3, 0.95 - 0.05 * 2]
    best = 1000 + 512 * np.mean(earned)
    assert sellf.evaluate(agent, deployments=2).reward == pytest.approx(best, rel=0.02)
    drawn = agent.decide(np.eye(3), ["a"] * 3, seed=0)
    assert set(drawn) <= {0, 1, 2}


def test_counts_of_a_window_are_those_of_favourable_and_revealed_decisions():
    """With one action that is favourable and hides the outcome, and one the other way round."""
    mixed = Actions(
        ("reject", "trust", "inspect"), (False, False, True), (False, True, False),
        gain=((0.0, 0.0), (-1.0, 1.0), (-0.2, -0.1)),
    )  # fmt: skip
    space = amounts(actions=mixed).space
    rng = np.random.default_rng(0)
    group, label, guess = rng.integers(0, 2, (3, 400))
    action = rng.integers(0, 3, 400)
    entries = windows.entry(space, *map(jnp.asarray, (group, action, label, guess)))
    window = windows.of_entries(space, entries)
    seen = action == 2
    views = {
        "true": (np.ones(400, bool), label),
        "imputed": (np.ones(400, bool), np.where(seen, label, guess)),
        "accepted": (seen, label),
    }
    for view in VIEWS:
        there, outcome = views[view]
        counts = jax.tree.map(np.asarray, windows.counts(space, window.histogram, view))
        for g in (0, 1):
            mine = there & (group == g)
            favourable = action == 1
            assert counts.people[g] == mine.sum()
            assert counts.accepted[g] == (mine & favourable).sum()
            assert counts.accepted_positive[g] == (mine & favourable & (outcome == 1)).sum()
            assert counts.rejected_positive[g] == (mine & ~favourable & (outcome == 1)).sum()


def test_a_rollout_of_three_actions_earns_and_counts_what_was_decided():
    world = amounts()
    state = worlds.reset(world, jax.random.key(0))
    log_odds = jnp.asarray(np.random.default_rng(1).normal(size=(2, 6)), jnp.float32)
    after, steps = jax.jit(
        lambda key: rollout(world, key, state, 400, lambda p: Categorical(log_odds[:, p]))
    )(jax.random.key(1))
    action, label = np.asarray(steps.outcome.action), np.asarray(steps.outcome.label, int)
    np.testing.assert_allclose(steps.reward, np.array(AMOUNTS.gain)[action, label], rtol=1e-6)
    taken = [[(action == a).sum(), ((action == a) & (label == 1)).sum()] for a in (1, 2)]
    assert np.asarray(after.taken).tolist() == taken
    left = float(worlds.resource(world, after.taken))
    assert left == pytest.approx(1000 + np.asarray(steps.reward).sum(), rel=1e-5)
    mean = utility("demographic", windows.counts(world.space, steps.histogram[-1], "true"))
    assert ((mean > 0) & (mean < 1)).all()


def test_a_world_of_three_actions_is_saved_and_comes_back(tmp_path):
    agent = trained("ppo")
    agent.save(tmp_path / "agent")
    again = sellf.load(tmp_path / "agent")
    assert saving.same(agent.world, again.world)
    assert again.world.space.gain == AMOUNTS.gain
    np.testing.assert_array_equal(agent.tables()[0], again.tables()[0])


def test_a_world_saved_with_a_cost_alone_has_the_two_actions_of_the_paper():
    world = sellf.make_world("lending")
    rules = saving.plain_settings(saving.rules_of(world))
    new = ("actions", "reveals", "favourable", "gain")
    old = {name: value for name, value in rules.items() if name not in new} | {"cost": 0.8}
    assert saving.current(old) == rules
    assert saving.current(rules) == rules


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"names": ("reject",)}, "give two or more"),
        ({"gain": ((0.0, 0.0), (0.0, 1.0))}, "its two gains"),
        ({"favourable": (True, True, True)}, "the first must not be favourable"),
        ({"reveals": (False, False, False)}, "must reveal the outcome"),
        ({"reveals": (True, True, True)}, "nothing is hidden"),
        ({"gain": ((0.0, 0.0),) * 3}, "none of them is worth anything"),
    ],
    ids=str,
)
def test_actions_that_make_no_world_are_refused(change, says):
    with pytest.raises(ValueError, match=says):
        Actions(**{**vars(AMOUNTS), **change})


PEEPING = """
from typing import Any

import jax.numpy as jnp
from jaxtyping import Array

from sellf.algorithms.algorithm import Algorithm, Batch
from sellf.algorithms.config import PPO


def penalty(config: Any, batch: Batch) -> Array:
    return jnp.mean(batch.space.{asks})


peeping = Algorithm("peeping", PPO, "asks for what it may not know", penalty=penalty)
"""


@pytest.mark.parametrize("asks", ["alpha", "moves", "arrivals"])
def test_a_hook_that_asks_its_space_for_the_law_of_the_world_fails(asks, monkeypatch):
    room = {}
    exec(PEEPING.format(asks=asks), room)
    monkeypatch.setitem(ALGORITHMS, "peeping", room["peeping"])
    with pytest.raises(AttributeError, match=f"'Space' object has no attribute '{asks}'"):
        sellf.train("lending", "peeping", steps=512, **FAST)


@pytest.mark.skipif(find_spec("pyright") is None, reason="needs pyright")
def test_a_hook_that_asks_its_space_for_the_label_law_does_not_pass_type_checking(tmp_path):
    for asks in ("alpha", "group"):
        (tmp_path / f"{asks}.py").write_text(PEEPING.format(asks=asks))
    done = subprocess.run(
        [sys.executable, "-m", "pyright", "--pythonpath", sys.executable, str(tmp_path)],
        capture_output=True,
        text=True,
    )
    errors = [line for line in done.stdout.splitlines() if " error: " in line]
    assert len(errors) == 1, done.stdout
    assert 'Cannot access attribute "alpha" for class "Space"' in errors[0]


def test_figures_by_group_are_logged_however_many_groups_there_are():
    groups = [f"group {i}" for i in range(20)]
    world = sellf.world_from_frame(
        {"group": groups * 5, "score": np.repeat([0, 1, 2, 3, 4], 20)},
        group="group",
        categorical=["score"],
        label=lambda x: 0.2 + x["score"] / 8,
        cost=0.5,
        population=400,
        window=400,
        horizon=512,
    )
    row = sellf.train(world, "sellf", steps=512, **FAST).history[0]
    assert {"acceptance", "error", "divergence", "renyi_scale"} <= set(row)
    assert len(row["error"]) == len(row["acceptance"]) == 20


def test_in_a_large_world_earlier_policies_are_those_that_decided(monkeypatch):
    """FOCOPS has two critics: a policy read from its parameters as if there were one is garbage."""
    from sellf.algorithms import predictor, trainer
    from sellf.algorithms.catalogue import resolve

    monkeypatch.setattr("sellf.envs.space.SMALL", 1)
    hooks, config = resolve(
        "focops", {"cost": "imputed", "rollout": 256, "epochs": 1}, "opportunity"
    )
    world = sellf.make_world("lending", population=300, window=200)
    problem = trainer.simulated(world, "opportunity", 2)
    # Compiled: taken step by step it would be half a minute.
    init, iterate = (jax.jit(f, static_argnums=0) for f in (trainer.init, trainer.iterate))
    start = init(hooks, problem, config, jax.random.key(0))
    state, _ = iterate(hooks, problem, config, start)
    kept = state.extra["predictor"]._replace(iteration=jnp.zeros((), jnp.int32))
    task = trainer._task(hooks, problem)
    everyone = jnp.arange(world.profiles)

    @jax.jit
    def chances(kept, parameters):
        before = predictor._accepted_before(task, config, kept, jax.random.key(1))
        run = partial(trainer.networks.run, hooks.stacks(world.space), parameters)
        outputs = trainer.by_profile(world.space, run)
        return before(everyone), jax.nn.sigmoid(outputs(everyone)[0])

    np.testing.assert_allclose(*chances(kept, start.learner.parameters), rtol=1e-5)


def test_an_algorithm_of_one_s_own_needs_only_what_is_different_in_it():
    plain = Algorithm("plain", PPO, "nothing is different")
    assert plain.stacks(sellf.make_world("lending").space)[0].policies == 1
    assert plain.stacks(amounts().space)[0].policies == 2


def test_theorem_1_holds_for_what_is_not_revealed():
    """By hand, to 1e-12: with hidden favourable actions and revealing unfavourable ones too."""
    from sellf.fairness import Counts
    from sellf.fairness.disparity import imputation_bias
    from sellf.fairness.notions import TABLE

    rng = np.random.default_rng(5)
    sets = [
        ((False, True, True), (False, True, True)),  # lending-amounts
        ((False, False, True), (False, True, False)),
        ((True, False, True), (False, True, True)),
    ]
    for reveals, favourable in sets:
        group, action = rng.integers(0, 3, 400), rng.integers(0, 3, 400)
        label, guess = rng.integers(0, 2, 400).astype(float), rng.random(400)
        shown, good = np.array(reveals)[action], np.array(favourable)[action]

        def counts(filled, good=good, group=group):
            member = group[:, None] == np.arange(3)
            sums = (np.ones(400), good, good * filled, ~good * filled)
            return Counts(*(np.asarray(x, float) @ member for x in sums))

        true, imputed = counts(label), counts(np.where(shown, label, guess))
        hidden = (~shown).astype(float) @ (group[:, None] == np.arange(3))
        for notion, definition in TABLE.items():
            if len(definition.rates) > 1:
                continue
            rate = definition.alone
            parts = imputation_bias(notion, true, imputed, hidden)
            moved = rate.utility(imputed) - rate.utility(true)
            np.testing.assert_allclose(parts.bias, moved, atol=1e-12)
            if reveals == favourable:
                np.testing.assert_allclose(
                    parts.bias, imputation_bias(notion, true, imputed).bias, atol=1e-15
                )


def test_lending_with_amounts_pays_and_moves_scores_by_the_loan():
    world = sellf.make_world("lending-amounts")
    assert world.space.actions == ("reject", "small", "large")
    plain = sellf.make_world("lending")
    np.testing.assert_array_equal(world.alpha, plain.alpha)
    moves, score = np.asarray(world.moves), np.arange(20) % 10
    np.testing.assert_array_equal(moves[:, :2], plain.moves)
    for positive, sign in ((1, 1), (0, -1)):
        moved = np.clip(score + 2 * sign, 0, 9) - score
        np.testing.assert_array_equal(moves[:, 2, positive], np.arange(20) + moved)
    assert world.space.gain == ((0.0, 0.0), (-0.2, 0.1), (-1.0, 0.2))


# All choose among actions by the same softmax, as PPO and SELLF-direct above.
@pytest.mark.parametrize(
    "algorithm",
    [
        pytest.param("sellf", marks=pytest.mark.slow),
        "elbert",
        pytest.param("cup", marks=pytest.mark.slow),
    ],
)
def test_other_algorithms_run_with_amounts(algorithm):
    small = {"population": 200, "window": 200, "horizon": 512}
    agent = sellf.train("lending-amounts", algorithm, world_settings=small, steps=1024, **FAST)
    assert np.isfinite(agent.parameters).all()
    assert agent.tables()[0].shape == (2, 20)
