"""Hidden confounding, estimated propensities, and the paper's certificate."""

import importlib.util

import numpy as np
import pytest

import sellf
from sellf.audit import sensitivity
from sellf.audit.certificate import error_bound
from sellf.errors import InputError
from sellf.logs.person import Person
from sellf.logs.sums import add_up
from tests.audit.logs import COLUMNS, lending


@pytest.mark.parametrize("level", [1.0, 1.3, 2.0, 5.0])
@pytest.mark.parametrize("m", [0.02, 0.3, 0.5, 0.9])
def test_the_closed_form_is_the_worst_that_the_model_allows(m, level):
    """Brute force: odds of acceptance e(y) with e(1), e(0) within L of the nominal odds.

    The rejected share is m (1 - e1) / e1 over its sum with (1 - m) (1 - e0) / e0; mixtures with the
    same nominal odds must keep their mean, m / e1 + (1 - m) / e0 = 1 / e.
    """
    e = 0.4
    odds = (1 - e) / e
    low, high = sensitivity.rejected_share(np.array(m), level)
    found = []
    for one in np.linspace(odds / level, odds * level, 4001):
        zero = (odds - m * one) / (1 - m)
        if odds / level - 1e-12 <= zero <= odds * level + 1e-12:
            found.append(m * one / (m * one + (1 - m) * zero))
    assert min(found) == pytest.approx(float(low), abs=2e-3)
    assert max(found) == pytest.approx(float(high), abs=2e-3)


def test_a_confounder_moves_the_truth_no_further_than_its_l_allows():
    """Decisions that know the outcome: the odds of the good are 1.5 times those of the bad."""
    rng = np.random.default_rng(0)
    people, level = 200_000, 1.5
    race = rng.choice(["a", "b"], people)
    good = rng.random(people) < np.where(race == "a", 0.6, 0.4)
    odds = np.where(good, level**0.5, level**-0.5) * np.where(race == "a", 1.5, 0.5)
    approved = (rng.random(people) < odds / (1 + odds)) * 1
    nominal = {z: approved[race == z].mean() for z in "ab"}
    log = {
        "race": race,
        "approved": approved,
        "p": np.where(race == "a", nominal["a"], nominal["b"]),
        "repaid": np.where(approved == 1, good, np.nan),
    }
    options = {**COLUMNS, "score": None}
    true = sellf.disparity("opportunity", group=race, action=approved, label=good).value
    audit = sellf.audit(log, **options, delta=0.01)
    assert not audit.difference.low <= true <= audit.difference.high
    doubt = next(doubt for doubt in audit.sensitivity if doubt.level == level)
    assert doubt.low <= true <= doubt.high


def test_ranges_widen_with_l_and_the_verdict_falls_where_it_is_said_to():
    audit = sellf.audit(lending(20_000, gap=0.5), **COLUMNS, omega=0.05)
    lows = [doubt.low for doubt in audit.sensitivity]
    assert lows == sorted(lows, reverse=True)
    assert audit.sensitivity[0].low == pytest.approx(audit.difference.low)
    assert 1 < audit.overturned_at < 10
    for doubt in audit.sensitivity:
        assert (doubt.verdict == "unfair") == (doubt.level < audit.overturned_at)
    assert "overturns the verdict" in str(audit)


def test_the_certificate_is_the_paper_s_on_the_same_rows():
    log = lending(4000)
    audit = sellf.audit(log, **COLUMNS, omega=0.3)
    p, f, accepted = log["p"], log["score"], log["approved"] == 1
    bounds = []
    for name in ("a", "b"):
        mine = log["race"] == name
        a, r = accepted[mine].mean(), 1 - accepted[mine].mean()
        chosen = mine & accepted
        w = sellf.importance_weights(p[chosen], p[chosen], acceptance_rate=a, rejection_rate=r)
        error = (w * (f[chosen] - log["repaid"][chosen])).mean()
        n, d2 = chosen.sum(), sellf.renyi(w)
        bound = sellf.cortes_two_sided(n, d2, 1.0, 0.05, groups=2, mean_weight=max(w.mean(), 1))
        bounds.append(abs(error) + bound)
    codes = (log["race"] == "b").astype(np.intp)
    positive = np.nan_to_num(log["repaid"])
    person = Person(accepted * 1.0, positive, p, f)
    found = error_bound(add_up(codes, 2, person, 0.01), predicted=True, pdim=1.0, delta=0.05)
    assert found == pytest.approx(bounds)
    imputed = sellf.disparity(
        "opportunity", group=log["race"], action=log["approved"], label=log["repaid"],
        prediction=f, view="imputed",
    )  # fmt: skip
    assert audit.certificate.imputed == pytest.approx(imputed.value)
    assert audit.certificate.disparity_bound >= audit.difference.high


@pytest.mark.parametrize("model", ["boosting", "logistic"])
def test_unknown_propensities_are_estimated_and_the_interval_says_it_is_asymptotic(model):
    log = lending(6000, seed=3)
    options = {**COLUMNS, "propensity": None, "score": None, "features": ["x"], "model": model}
    audit = sellf.audit(log, **options)
    true = sellf.disparity(
        "opportunity", group=log["race"], action=log["approved"], label=log["hidden"]
    ).value
    assert not audit.finite_sample
    assert "asymptotic" in str(audit).split("\n")[0]
    assert audit.difference.low <= true <= audit.difference.high
    assert audit.difference.width < 0.25
    assert audit.verdict == "unfair"


def test_words_dates_and_gaps_are_features_too():
    rng = np.random.default_rng(1)
    log = lending(1500)
    log["job"] = np.where(log["x"] < 0.3, "none", rng.choice(["a", "b", "c"], 1500))
    log["since"] = np.datetime64("2020-01-01") + (log["x"] * 900).astype("timedelta64[D]")
    log["income"] = np.where(rng.random(1500) < 0.1, np.nan, log["x"])
    options = {**COLUMNS, "propensity": None, "features": ["job", "since", "income"]}
    for model in ("boosting", "logistic"):
        audit = sellf.audit(log, **options, model=model)
        assert audit.difference.low < audit.difference.high


def test_estimating_says_what_to_install_without_scikit_learn(monkeypatch):
    find = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == "sklearn" else find(name)
    )
    with pytest.raises(InputError, match=r"pip install 'sellf\[audit\]'"):
        sellf.audit(lending(100), **{**COLUMNS, "propensity": None})


def test_features_beside_known_propensities_are_said_to_be_unused():
    audit = sellf.audit(lending(200), **COLUMNS, features=["x"])
    assert "features were not used" in audit.warnings[0]


def test_without_propensities_and_features_nothing_is_assumed_of_the_rejected():
    log = lending(3000)
    audit = sellf.audit(log, **{**COLUMNS, "propensity": None, "score": None})
    assert audit.finite_sample
    assert audit.certificate is None
    assert audit.sensitivity == ()
    assert "nothing about the rejected" in str(audit)
