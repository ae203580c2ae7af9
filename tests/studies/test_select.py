"""Algorithm 2 against cases worked out by hand."""

import numpy as np

from sellf.studies import plan
from sellf.studies.records import Record
from sellf.studies.results import results
from sellf.studies.run import run
from sellf.studies.select import choose, remark, select
from sellf.studies.store import open_store
from tests.studies.tiny import TEXT, FakeEngine, Outcome, evaluation, folder, study


def test_the_best_reward_among_those_below_omega():
    # Excess over 0.05: 0, 0, 0.01, 0.25. The largest reward has no say, nor has 0.01 < 0.04.
    assert choose([0.04, 0.01, 0.06, 0.30], [900, 800, 950, 1600], 0.05) == 0


def test_the_least_violation_if_none_is_below_omega():
    assert choose([0.30, 0.11, 0.12], [1600, 900, 1200], 0.05) == 1


def test_a_negative_reward_is_not_beaten_by_a_worse_violation():
    assert choose([0.01, 0.30], [-239, 5], 0.05) == 0


NAN = float("nan")


def test_an_undefined_disparity_is_not_a_fair_one():
    assert choose([NAN, 0.04, 0.30], [1600, 900, 1200], 0.05) == 1
    assert choose([0.30, NAN, 0.12], [1600, 1000, 1200], 0.05) == 2
    assert choose([NAN, NAN], [900, 1000], 0.05) == 1


def test_what_selection_could_not_look_at_is_told():
    def runs(gap):
        one = evaluation(1000, 0.3)
        one.disparities["accepted"] = np.array([gap, gap])
        return [Record(None, one, {}, 1.0)]  # type: ignore

    assert remark([runs(0.0), runs(0.1)], "accepted") == ""
    some = remark([runs(0.0), runs(NAN), []], "accepted")
    assert some == (
        "1 of 2 configurations have no defined disparity among the accepted and are not selected."
    )
    assert "the largest reward is selected" in remark([runs(NAN), runs(NAN)], "accepted")
    assert remark([runs(NAN)], "true") == ""


def test_each_view_is_selected_by_its_own_disparity():
    figures = {1: (1600, 0.30), 2: (1200, 0.09), 3: (900, 0.04)}
    grid = [[Record(None, evaluation(*one), {}, 1.0)] for one in figures.values()]  # type: ignore
    assert select(grid, "true", 0.05) == 2
    # The imputed disparity is half the true one in these: 0.045 is tolerated.
    assert select(grid, "imputed", 0.05) == 1
    # Among the accepted there is none at all.
    assert select(grid, "accepted", 0.05) == 0
    assert select([[], *grid[1:]], "accepted", 0.05) == 1
    assert select([[], []], "true", 0.05) is None


def test_a_study_takes_what_selection_says_to_its_final_seeds(tmp_path):
    text = TEXT.replace(
        "[algorithms.ppo]", "[algorithms.pocar-oracle]\ngrid.beta_increase = [1, 2]"
    )
    made = study(text)
    rewards = {0.01: (1300, 0.14), 0.1: (1000, 0.06), 1: (1500, 0.09), 2: (800, 0.06)}

    def outcome(job):
        settings = job.run.hyperparameters
        name = "beta_renyi" if job.run.algorithm.name == "sellf" else "beta_increase"
        return Outcome(job, folder(job.run, evaluation(*rewards[settings[name]])))

    store = open_store(tmp_path)
    assert run(made, store, FakeEngine(outcome)).complete
    oracle, sellf = results(made, store).cells
    # The oracle looks at 0.09 and 0.06, sellf at 0.07 and 0.03.
    assert oracle.chosen == {"beta_increase": 2}
    assert sellf.chosen["beta_renyi"] == 0.1
    assert [record.spec.seed for record in sellf.final] == [0, 1, 2]
    assert all(r.spec.hyperparameters["beta_renyi"] == 0.1 for r in sellf.final)
    assert len(sellf.grid) == 4
    assert {plan.key(r.spec) for r in sellf.grid} & {plan.key(r.spec) for r in sellf.final}
