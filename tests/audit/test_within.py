"""Disparities given the same circumstances: by hand, at once, and where signs turn."""

import numpy as np
import pytest

import sellf
from sellf.audit.saved import read
from sellf.errors import InputError
from sellf.report import audit as page
from tests.audit.logs import COLUMNS, lending

DECISIONS = {"group": "sex", "decision": "admitted", "notion": "demographic", "seed": 0}


def berkeley():
    """Return applications where women are admitted more often in both faculties, but not in all.

    Most women apply where most are rejected, as in Bickel, Hammel and O'Connell (1975).
    """
    cells = [
        ("men", "engineering", 800, 0.60),
        ("women", "engineering", 200, 0.70),
        ("men", "arts", 200, 0.20),
        ("women", "arts", 800, 0.30),
    ]
    columns = {"sex": [], "faculty": [], "admitted": []}
    for sex, faculty, people, share in cells:
        taken = round(people * share)
        columns["sex"] += [sex] * people
        columns["faculty"] += [faculty] * people
        columns["admitted"] += [1] * taken + [0] * (people - taken)
    return columns


def test_signs_that_turn_within_strata_are_told():
    found = sellf.audit(berkeley(), **DECISIONS, within="faculty", reference="men")
    within = found.measures["within"]
    (overall,) = within.overall
    assert overall.crude == pytest.approx(0.38 - 0.52)
    assert overall.standardised.value == pytest.approx(0.10)
    assert overall.composition == pytest.approx(-0.24)
    assert overall.finite_sample
    assert 0 < overall.standardised.low < 0.1 < overall.standardised.high
    assert "Simpson" in str(found)
    (axes,) = within.plot().axes
    assert axes.get_title(loc="left") == "women less men"
    assert len(axes.get_yticklabels()) == 3
    assert [row.difference.value for row in within.strata] == pytest.approx([0.1, 0.1])


def test_standardised_differences_are_weighted_means_of_the_strata_s():
    log = lending(5000, seed=4)
    log["branch"] = np.random.default_rng(1).choice(["n", "s", "w"], 5000, p=[0.6, 0.3, 0.1])
    found = sellf.audit(log, **COLUMNS, within="branch", reference="a", seed=0)
    within = found.measures["within"]
    (overall,) = within.overall
    for row in within.strata:
        members = log["branch"] == row.stratum.removeprefix("branch=")
        assert row.share == pytest.approx(members.mean())
        assert row.people == (members & (log["race"] == "b")).sum()
        part = {name: values[members] for name, values in log.items()}
        alone = sellf.audit(part, **COLUMNS, seed=0)
        assert alone.pairs[("a", "b")].value == pytest.approx(row.difference.value, abs=0.02)
        # All strata hold together, so each is wider than alone.
        assert row.difference.width > alone.pairs[("a", "b")].width
    mean = sum(row.share * row.difference.value for row in within.strata)
    assert overall.standardised.value == pytest.approx(mean, abs=1e-9)
    assert overall.finite_sample  # in w so few are accepted that it is made of the strata's own
    log["half"] = np.where(log["branch"] == "n", "n", "other")
    found = sellf.audit(log, **COLUMNS, within="half", reference="a", seed=0)
    (many,) = found.measures["within"].overall
    assert not many.finite_sample
    assert many.standardised.width < overall.standardised.width


def test_a_score_is_cut_into_bands_of_equally_many_people():
    log = lending(3000, seed=5)
    found = sellf.audit(log, **COLUMNS, within="score", notion="demographic", seed=0)
    shares = [row.share for row in found.measures["within"].strata]
    assert len(shares) == 5
    assert shares == pytest.approx([0.2] * 5, abs=0.01)


def test_strata_are_read_back_drawn_and_refused_where_there_are_too_many(tmp_path):
    log = berkeley()
    log["both"] = [f"{k}" for k in range(2000)]
    found = sellf.audit(log, **DECISIONS, within=["faculty"])
    path = tmp_path / "audit.json"
    path.write_text(found.to_json())
    assert read(path).to_dict() == found.to_dict()
    assert "where the difference comes from" in page(found)
    with pytest.raises(InputError, match="2,000 strata"):
        sellf.audit(log, **DECISIONS, within="both,faculty")
    with pytest.raises(InputError, match="no column 'facult'"):
        sellf.audit(log, **DECISIONS, within="facult")


@pytest.mark.slow
def test_standardised_differences_hold_where_few_are_accepted():
    """In this cell of the study the normal interval missed in eleven of 21 logs."""
    from coverage_study.panels import catalogue, misses

    cell = next(cell for cell in catalogue() if cell.number == 251)
    assert str(cell).startswith("opportunity, strata, propensities, 120 / 100")
    found = [misses(cell, log) for log in range(10)]
    assert sum(one["standardised, exact"] for one in found) <= 1
    assert sum(one["strata"] for one in found) <= 1
