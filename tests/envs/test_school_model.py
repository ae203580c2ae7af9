"""The school model: recovers a known tree, and looks like the rows it was fitted on."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score

from sellf.envs.school import model as school_model
from sellf.envs.school.enem import EnemRows, People, one_hot, read_enem
from sellf.envs.school.law import design_matrix
from sellf.envs.school.model import SchoolModel

ENEM = Path(__file__).resolve().parents[3] / "shared" / "data" / "enem" / "enem_sp_2017_2023.csv"
needs_enem = pytest.mark.skipif(not ENEM.exists(), reason="no ENEM microdata at hand")

# A chain of three features and one that hangs on the middle one: 0 - 1 - 2, 1 - 3.
EDGES = {(0, 1), (1, 2), (1, 3)}
STAY = np.array([0.8, 0.7])
"""P(a child has its parent's code) in each group."""


def known_rows(n: int = 60_000) -> EnemRows:
    rng = np.random.default_rng(0)
    group = (rng.random(n) < 0.6).astype(np.uint8)

    def child(parent: NDArray[np.uint8]) -> NDArray[np.uint8]:
        stay = rng.random(n) < STAY[group]
        other = (parent + rng.integers(1, 3, n)) % 3
        return np.where(stay, parent, other).astype(np.uint8)

    first = (rng.random(n) < 0.3 + 0.2 * group).astype(np.uint8)
    second = child(first)
    codes = np.stack([first, second, child(second), child(second)], axis=1)
    noise = rng.multivariate_normal(np.zeros(3), 400.0 + 600.0 * np.eye(3), n)
    grades = 500.0 + 30.0 * codes[:, 1:2] + 20.0 * group[:, None] + noise
    label = rng.random(n) < 1 / (1 + np.exp(1.5 - 0.5 * codes[:, 2] - 0.5 * group))
    names = ("a", "b", "c")
    return EnemRows(
        people=People(codes, group, grades),
        label=label.astype(np.uint8),
        features=("p", "q", "r", "s"),
        categories=(names[:2], names, names, names),
    )


@pytest.fixture(scope="module")
def known() -> SchoolModel:
    return school_model.fit(known_rows(), strata=1)


def test_the_tree_is_recovered(known: SchoolModel) -> None:
    edges = {(min(c, p), max(c, p)) for c, p in enumerate(known.parents) if p >= 0}
    assert edges == EDGES
    assert known.order[0] == 0
    for child in known.order[1:]:
        assert known.order.index(known.parents[child]) < known.order.index(child)


def test_the_tables_are_recovered(known: SchoolModel) -> None:
    np.testing.assert_allclose(known.tables[0][:, 0], [[0.7, 0.3], [0.5, 0.5]], atol=0.01)
    for child in (1, 2, 3):
        for group, stay in enumerate(STAY):
            parents = known.tables[child].shape[1]
            expected = np.full((parents, 3), (1 - stay) / 2)
            expected[np.arange(parents), np.arange(parents)] = stay
            np.testing.assert_allclose(known.tables[child][group], expected, atol=0.02)


def test_the_grades_are_recovered(known: SchoolModel) -> None:
    np.testing.assert_allclose(known.grade_covariance, 400.0 + 600.0 * np.eye(3), atol=25.0)
    of_second = known.grade_weights[2:5]
    np.testing.assert_allclose(np.diff(of_second, axis=0), 30.0, atol=1.0)
    of_group = known.grade_weights[-2:]
    np.testing.assert_allclose(np.diff(of_group, axis=0), 20.0, atol=1.0)


@pytest.mark.parametrize("strata", [1, 2])
def test_shares_and_base_rate_are_the_papers(strata: int) -> None:
    model = school_model.fit(known_rows(), strata=strata)
    people = model.sample(np.random.default_rng(5), 200_000)
    assert people.group.mean() == pytest.approx(0.62, abs=0.005)
    for with_grades in (False, True):
        rate = model.probability(people, with_grades=with_grades).mean()
        assert rate == pytest.approx(0.37, abs=0.002)
    assert people.grades.min() >= 0
    assert people.grades.max() <= 1000


def test_save_and_load_give_the_same_people(known: SchoolModel, tmp_path: Path) -> None:
    path, again = tmp_path / "model.json", tmp_path / "again.json"
    known.save(path)
    loaded = school_model.load(path)
    loaded.save(again)
    assert path.read_bytes() == again.read_bytes()
    one, other = (m.sample(np.random.default_rng(3), 500) for m in (known, loaded))
    np.testing.assert_array_equal(one.codes, other.codes)
    np.testing.assert_array_equal(one.group, other.group)
    np.testing.assert_array_equal(one.grades, other.grades)
    np.testing.assert_array_equal(
        known.probability(one, with_grades=True), loaded.probability(other, with_grades=True)
    )


def test_the_same_seed_gives_the_same_people(known: SchoolModel) -> None:
    one, same, other = (known.sample(np.random.default_rng(s), 100) for s in (1, 1, 2))
    np.testing.assert_array_equal(one.codes, same.codes)
    np.testing.assert_array_equal(one.grades, same.grades)
    assert not np.array_equal(one.codes, other.codes)


def test_wrong_use_is_refused(known: SchoolModel, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="n is 0"):
        known.sample(np.random.default_rng(0), 0)
    (tmp_path / "other.json").write_text('{"provenance": ""}')
    with pytest.raises(ValueError, match=r"other.json: not a school model"):
        school_model.load(tmp_path / "other.json")
    rows = known_rows(100)
    alone = replace(rows, people=replace(rows.people, group=np.ones(100, np.uint8)))
    with pytest.raises(ValueError, match="no rows of group Black/brown"):
        school_model.fit(alone)


def test_the_packaged_model_is_whole() -> None:
    model = school_model.load()
    assert len(model.features) == len(model.categories) == len(model.tables) == 37
    assert sum(model.sizes) == 118
    assert sorted(model.order) == list(range(37))
    assert model.groups == ("Black/brown", "white")
    assert model.group_shares == (0.38, 0.62)
    for child, (table, parent) in enumerate(zip(model.tables, model.parents, strict=True)):
        parents = model.sizes[parent] if parent >= 0 else 1
        assert table.shape == (4, parents, model.sizes[child])
        np.testing.assert_allclose(table.sum(axis=2), 1.0, atol=1e-7)
        assert (table > 0).all()
    np.testing.assert_allclose(model.stratum_shares.sum(axis=1), 1.0, atol=1e-7)
    people = model.sample(np.random.default_rng(1), 100_000)
    for with_grades in (False, True):
        rate = model.probability(people, with_grades=with_grades).mean()
        assert rate == pytest.approx(0.37, abs=0.005)


# From here on the packaged model against real applicants, weighted to its group shares.


@pytest.fixture(scope="module")
def rows() -> EnemRows:
    return read_enem(ENEM)


@pytest.fixture(scope="module")
def model() -> SchoolModel:
    return school_model.load()


@pytest.fixture(scope="module")
def people(model: SchoolModel) -> People:
    return model.sample(np.random.default_rng(1), 100_000)


@pytest.fixture(scope="module")
def weight(rows: EnemRows, model: SchoolModel) -> NDArray[np.float64]:
    counts = np.bincount(rows.people.group)
    return (np.array(model.group_shares) / counts)[rows.people.group]


@needs_enem
def test_the_packaged_model_is_the_one_fitted_on_them(rows: EnemRows, model: SchoolModel) -> None:
    assert len(rows.label) == 4704
    assert rows.categories == model.categories
    again = school_model.fit(rows)
    assert again.parents == model.parents
    np.testing.assert_allclose(again.law.weights, model.law.weights, atol=1e-6)
    assert again.law.shift == pytest.approx(model.law.shift, abs=1e-6)


@needs_enem
def test_each_feature(rows: EnemRows, people: People, weight: NDArray[np.float64]) -> None:
    for i, size in enumerate(rows.sizes):
        data = np.bincount(rows.people.codes[:, i], weight, minlength=size)
        drawn = np.bincount(people.codes[:, i], minlength=size) / len(people.group)
        assert 0.5 * np.abs(data - drawn).sum() <= 0.02, rows.features[i]


@needs_enem
def test_pairs_of_features(rows: EnemRows, people: People, weight: NDArray[np.float64]) -> None:
    of_rows = one_hot(rows.people.codes, rows.sizes)
    of_people = one_hot(people.codes, rows.sizes)
    data = (of_rows * weight[:, None]).T @ of_rows
    drawn = of_people.T @ of_people / len(of_people)
    feature = np.repeat(np.arange(len(rows.sizes)), rows.sizes)
    assert np.abs(data - drawn)[feature[:, None] < feature].mean() <= 0.01


@needs_enem
def test_grades(rows: EnemRows, people: People, weight: NDArray[np.float64]) -> None:
    real = rows.people.grades
    np.testing.assert_allclose(people.grades.mean(axis=0), weight @ real, atol=3.0)
    np.testing.assert_allclose(people.grades.std(axis=0), real.std(axis=0), rtol=0.05)
    np.testing.assert_allclose(np.corrcoef(people.grades.T), np.corrcoef(real.T), atol=0.03)


@needs_enem
@pytest.mark.parametrize("with_grades", [False, True])
def test_the_qualification_gap(
    rows: EnemRows, model: SchoolModel, people: People, with_grades: bool
) -> None:
    white = rows.people.group == 1
    gap = rows.label[white].mean() - rows.label[~white].mean()
    p = model.probability(people, with_grades=with_grades)
    drawn = p[people.group == 1].mean() - p[people.group == 0].mean()
    assert drawn == pytest.approx(gap, abs=0.02)


@needs_enem
@pytest.mark.parametrize("with_grades", [False, True])
def test_a_fresh_regression_predicts_as_well(
    rows: EnemRows, model: SchoolModel, people: People, with_grades: bool
) -> None:
    """At the rows' base rate, on unseen people: 118 columns flatter a regression on 4,704 rows."""
    grades = model.law_with_grades

    def design(who: People) -> NDArray[np.float64]:
        standard = (who.grades - grades.grade_mean) / grades.grade_std
        columns = design_matrix(who, model.sizes)
        return np.hstack([columns, standard]) if with_grades else columns

    regression = LogisticRegression(max_iter=2000)
    on_rows = cross_val_score(regression, design(rows.people), rows.label, cv=5).mean()
    law = replace(model.law_with_grades if with_grades else model.law, shift=0.0)
    some = People(people.codes[:40_000], people.group[:40_000], people.grades[:40_000])
    p = law.probability(some, model.sizes)
    label = np.random.default_rng(2).random(len(p)) < p
    x = design(some)
    regression.fit(x[:20_000], label[:20_000])
    assert regression.score(x[20_000:], label[20_000:]) == pytest.approx(on_rows, abs=0.02)


@needs_enem
@pytest.mark.parametrize("with_grades", [False, True])
def test_labels_are_as_predictable_at_the_papers_base_rate(
    rows: EnemRows,
    model: SchoolModel,
    people: People,
    weight: NDArray[np.float64],
    with_grades: bool,
) -> None:
    """A base rate nearer to one half is harder to predict, for the rows just as for the model."""
    p_rows = model.probability(rows.people, with_grades=with_grades)
    p_people = model.probability(people, with_grades=with_grades)
    on_rows = weight @ np.maximum(p_rows, 1 - p_rows)
    assert np.maximum(p_people, 1 - p_people).mean() == pytest.approx(on_rows, abs=0.02)
