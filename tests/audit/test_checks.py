"""Decisions that contradict the propensities are found; decisions that do not, are not."""

import re

import numpy as np
import pytest

import sellf
from sellf.audit.checks import contradiction
from sellf.logs.person import Person
from sellf.logs.sums import add_up
from tests.audit.logs import COLUMNS, lending

NAMES = ["a", "b"]


def found(group, accepted, p, score=None):
    person = Person(accepted * 1.0, np.zeros(len(p)), p, score)
    return contradiction(NAMES, add_up(group.astype(np.intp), 2, person, 0.01))


def world(seed, people=2000):
    rng = np.random.default_rng(seed)
    p = np.clip(rng.beta(0.7, 0.7, people), 0.002, 0.998)
    return rng, rng.integers(0, 2, people), p, rng.random(people) < p


def test_right_propensities_are_hardly_ever_doubted():
    alarms = 0
    for seed in range(400):
        rng, group, p, accepted = world(seed, [60, 2000][seed % 2])
        # A score made before the decision may know the propensity, and all else.
        score = np.clip(0.5 * p + 0.5 * rng.random(len(p)), 0, 1)
        alarms += found(group, accepted, p, score if seed % 4 < 2 else None) is not None
    assert alarms < 4


def test_a_wrong_propensity_of_one_group_is_found_and_named():
    for seed in range(20):
        _, group, p, accepted = world(seed, 6000)
        said = np.where(group == 1, 0.5 * p, p)
        sentence = str(found(group, accepted, said))
        assert "the propensities contradict the decisions: of " in sentence
        assert " people of b with a propensity between " in sentence
        low, high, expected, seen = re.search(
            r"between ([\d.]+) and ([\d.]+), ([\d.]+)% should have been accepted "
            r"and ([\d.]+)% were",
            sentence,
        ).groups()
        mine = (group == 1) & (said >= float(low)) & (said < float(high))
        assert f"of {mine.sum():,} people" in sentence
        assert float(expected) == pytest.approx(100 * said[mine].mean(), abs=0.06)
        assert float(seen) == pytest.approx(100 * accepted[mine].mean(), abs=0.06)
        assert "chances with which these decisions were drawn" in sentence


def test_a_score_that_knows_the_decisions_is_found():
    for seed in range(20):
        _, group, p, accepted = world(seed)
        sentence = str(found(group, accepted, p, np.where(accepted, 0.8, 0.3)))
        assert "and a score between " in sentence
        assert "Leave --score out" in sentence
        assert found(group, accepted, p) is None


def test_an_audit_of_such_a_log_is_void_and_demographic_parity_is_not():
    log = lending(4000)
    wrong = {**log, "p": np.clip(log["p"] * 0.6, 0.02, 1)}
    for notion in ("qualification", "accuracy", "opportunity"):
        audit = sellf.audit(wrong, **COLUMNS, notion=notion, seed=1, omega=0.01)
        assert audit.void is not None
        assert audit.verdict == "undetermined"
        assert audit.needed is None
        assert audit.void in str(audit).replace("\n", " ") or audit.void in audit.warnings
        # As if there were no propensities: nothing is assumed of the rejected.
        plain = sellf.audit(
            wrong, **{**COLUMNS, "propensity": None, "score": None}, notion=notion, seed=1
        )
        assert audit.difference == plain.difference
    parity = sellf.audit(wrong, **COLUMNS, notion="demographic", seed=1)
    assert parity.void is None
    assert parity.verdict == "unfair"


def _repeated(seed, *, shared, rows=10, chance=0.3, said=0.3):
    """A log of people with several rows, who share a decision or are decided about each time."""
    rng = np.random.default_rng(seed)
    person = np.repeat(np.arange(200), rows)
    drawn = rng.random(200 if shared else len(person)) < chance
    accepted = (drawn[person] if shared else drawn).astype(int)
    return {
        "group": np.where(person < 100, "a", "b"),
        "accepted": accepted,
        "repaid": np.where(accepted, rng.random(len(person)) < 0.5, np.nan),
        "p": np.full(len(person), said),
        "person": person,
    }


@pytest.mark.parametrize("shared", [True, False])
def test_rows_of_one_person_may_share_a_decision(shared):
    """Each row has the right chance; but it is one draw that is seen ten times."""
    columns = {"group": "group", "decision": "accepted", "outcome": "repaid", "propensity": "p"}
    for seed in range(40):
        log = _repeated(seed, shared=shared)
        assert sellf.audit(log, **columns, person="person", seed=seed).void is None
    for seed in range(10):
        log = _repeated(seed, shared=shared, said=0.6)
        void = sellf.audit(log, **columns, person="person", seed=seed).void
        assert void is not None
        assert "of 100 people of " in void
