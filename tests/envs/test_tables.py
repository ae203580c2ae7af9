"""The committed tables against their source's known figures and against derived copies."""

import csv
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from sellf.envs import tables

DERIVED = Path(__file__).resolve().parents[3] / "shared" / "data" / "derived"
needs_derived = pytest.mark.skipif(not DERIVED.exists(), reason="no derived tables at hand")


def derived(name: str) -> list[dict[str, str]]:
    with (DERIVED / name).open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_fico_probabilities_are_complete() -> None:
    fico = tables.fico()
    assert fico.races == ("White", "Black", "Hispanic", "Asian")
    assert fico.p_class.shape == fico.p_repay.shape == (4, 10)
    np.testing.assert_allclose(fico.p_class.sum(axis=1), 1.0, atol=1e-7)
    np.testing.assert_allclose(fico.shares.sum(), 1.0, atol=1e-7)
    assert ((fico.p_repay > 0) & (fico.p_repay < 1)).all()
    assert (np.diff(fico.p_repay, axis=1) > 0).all(), "a better score repays more often"


def test_lending_starts_with_the_known_qualification_gap() -> None:
    fico = tables.fico()
    qualified = dict(zip(fico.races, (fico.p_class * fico.p_repay).sum(axis=1), strict=True))
    assert qualified["White"] - qualified["Black"] == pytest.approx(0.418, abs=0.005)


def test_compas_has_every_cell() -> None:
    compas = tables.compas()
    assert compas.races == ("African-American", "Caucasian")
    assert compas.sexes == ("Female", "Male")
    assert compas.ages == ("<25", "25-34", "35-44", "45-54", "55+")
    assert compas.priors == ("0", "1", "2", "3", "4", "5", "6-10", "11+")
    assert compas.n.shape == compas.n_reoffended.shape == (2, 2, 5, 8)
    assert compas.n.sum() == 5278
    assert (compas.n_reoffended >= 0).all()
    assert (compas.n_reoffended <= compas.n).all()


def test_recidivism_starts_with_the_known_qualification_gap() -> None:
    compas = tables.compas()
    # Qualified (Y = 1) is not to reoffend.
    black, white = 1 - compas.n_reoffended.sum(axis=(1, 2, 3)) / compas.n.sum(axis=(1, 2, 3))
    assert white - black == pytest.approx(0.13, abs=0.005)


@pytest.mark.parametrize("name", ["fico", "fico_groups", "compas", "school"])
def test_every_table_says_where_it_comes_from(name: str) -> None:
    said = tables.provenance(name)
    assert said.startswith("source: ")
    assert "; licence: " in said
    assert "; transformation: " in said


def test_an_unknown_table_lists_the_known_ones() -> None:
    with pytest.raises(ValueError, match=r"'fica'.*fico, fico_groups, compas, school"):
        tables.provenance("fica")


@needs_derived
def test_fico_equals_the_derived_classes() -> None:
    fico = tables.fico()
    rows = derived("fico_classes.csv")
    assert len(rows) == 40
    for row in rows:
        at = fico.races.index(row["race"]), int(row["cls"])
        assert fico.p_class[at] == pytest.approx(float(row["p_class_score"]), abs=1e-6)
        assert fico.p_repay[at] == pytest.approx(float(row["p_repay_score_left"]), abs=1e-6)
    for row in derived("fico_group_totals.csv"):
        share = fico.shares[fico.races.index(row["race"])]
        assert share == pytest.approx(float(row["share"]), abs=1e-6)


@needs_derived
def test_compas_equals_the_derived_counts() -> None:
    compas = tables.compas()
    cells = {
        (row["race"], row["sex"], row["age_cls"], row["priors_cls"]): row
        for row in derived("compas_2race_sex_age_priors.csv")
    }
    names = product(compas.races, compas.sexes, compas.ages, compas.priors)
    flat = zip(names, compas.n.ravel(), compas.n_reoffended.ravel(), strict=True)
    assert all((int(cells[c]["n"]), int(cells[c]["n_recid"])) == (n, r) for c, n, r in flat)

    merged = {
        (row["race"], row["age_cls"], row["priors_cls"]): row
        for row in derived("compas_2race_age_priors.csv")
    }
    n, reoffended = compas.n.sum(axis=1), compas.n_reoffended.sum(axis=1)
    names = product(compas.races, compas.ages, compas.priors)
    flat = zip(names, n.ravel(), reoffended.ravel(), strict=True)
    assert all((int(merged[c]["n"]), int(merged[c]["n_recid"])) == (n, r) for c, n, r in flat)
