"""A compact model of the school applicants, from whose parameters populations are drawn."""

import json
from dataclasses import asdict, dataclass, replace
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sellf.envs.school.enem import GRADES, GROUPS, EnemRows, People
from sellf.envs.school.law import LabelLaw, design_matrix, fit_law, look_up, shifted_to
from sellf.envs.school.tree import (
    conditional_information,
    conditional_tables,
    joint_counts,
    sample_codes,
    spanning_tree,
)
from sellf.errors import InputError

Array = NDArray[np.float64]

GROUP_SHARES = (0.38, 0.62)
BASE_RATE = 0.37
"""Shares of groups (Black/brown, white) and of positive labels, as published in the paper."""

_PSEUDO_PEOPLE = 1.0
_GRADE_PENALTY = 1.0
_SHIFT_SAMPLE = 200_000
# Significant digits: tables are exact ratios; fitted figures differ in their last bits between
# machines, and with fewer digits those differences vanish from the file.
_DIGITS_OF_TABLES, _DIGITS = 8, 6


@dataclass(frozen=True)
class SchoolModel:
    """A tree of features given group, grades linear in them, and alpha without and with grades.

    The tables are also conditional on a hidden stratum within each group (alpha below or above the
    median of the group). A tree alone preserves the dependence between neighbouring features, but
    loses the socioeconomic factor common to all of them and a tenth to a fifth of alpha's spread.
    """

    provenance: str
    features: tuple[str, ...]
    categories: tuple[tuple[str, ...], ...]
    groups: tuple[str, ...]
    group_shares: tuple[float, ...]
    stratum_shares: Array
    """P(stratum | group), (groups, strata)."""
    parents: tuple[int, ...]
    """Parent of each feature; -1 for the root."""
    order: tuple[int, ...]
    """Order of the features, with parents before children."""
    tables: tuple[Array, ...]
    """P(category | group and stratum, category of the parent) of each feature, group-major."""
    grades: tuple[str, ...]
    grade_intercept: Array
    """(3,)"""
    grade_weights: Array
    """(one-hot columns + groups, 3)"""
    grade_covariance: Array
    """Residual covariance given features and group, (3, 3)."""
    law: LabelLaw
    """alpha(x, z) of `school`."""
    law_with_grades: LabelLaw
    """alpha(x, z) of `school-continuous`, with the mean and deviation that standardise grades."""

    @property
    def sizes(self) -> tuple[int, ...]:
        """Number of categories of each feature."""
        return tuple(len(names) for names in self.categories)

    def sample(self, rng: np.random.Generator, n: int) -> People:
        """Draw `n` applicants."""
        if n < 1:
            raise InputError(f"n is {n}, expected at least 1 applicant")
        strata = self.stratum_shares.shape[1]
        edges = np.cumsum(np.array(self.group_shares)[:, None] * self.stratum_shares)[:-1]
        stratum = np.searchsorted(edges, rng.random(n), side="right").astype(np.uint8)
        codes = sample_codes(rng, stratum, self.parents, self.order, self.tables)
        group = stratum // np.uint8(strata)
        people = People(codes, group, np.empty((n, 0)))
        noise = rng.standard_normal((n, len(self.grades)))
        grades = self.grade_intercept + look_up(people, self.sizes, self.grade_weights)
        grades += noise @ np.linalg.cholesky(self.grade_covariance).T
        return replace(people, grades=np.clip(grades, 0.0, 1000.0))

    def probability(self, people: People, *, with_grades: bool) -> Array:
        """Return alpha(x, z) of each applicant."""
        law = self.law_with_grades if with_grades else self.law
        return law.probability(people, self.sizes)

    def save(self, path: Path) -> None:
        """Write the model as JSON; equal models give equal bytes."""
        entries = (f"{json.dumps(k)}: {json.dumps(v)}" for k, v in _encode(self).items())
        path.write_text("{\n" + ",\n".join(entries) + "\n}\n", encoding="utf-8")


def fit(
    rows: EnemRows,
    *,
    provenance: str = "",
    group_shares: tuple[float, float] = GROUP_SHARES,
    base_rate: float | None = BASE_RATE,
    strata: int = 2,
) -> SchoolModel:
    """Fit a model on real rows, then set the shares of groups and of positive labels (if given)."""
    people, sizes = rows.people, rows.sizes
    if absent := [name for g, name in enumerate(GROUPS) if not (people.group == g).any()]:
        raise InputError(f"no rows of group {', '.join(absent)}; expected some of each of {GROUPS}")
    law = fit_law(rows, with_grades=False)
    stratum = _strata(law.logit(people, sizes), people.group, strata)
    stratum_counts = np.bincount(stratum, minlength=len(GROUPS) * strata).reshape(-1, strata)
    counts = joint_counts(people.codes, stratum, sizes, len(GROUPS) * strata)
    parents, order = spanning_tree(conditional_information(counts, sizes))
    intercept, weights, covariance = _fit_grades(design_matrix(people, sizes), people.grades)
    model = SchoolModel(
        provenance=provenance,
        features=rows.features,
        categories=rows.categories,
        groups=GROUPS,
        group_shares=group_shares,
        stratum_shares=stratum_counts / stratum_counts.sum(axis=1, keepdims=True),
        parents=parents,
        order=order,
        tables=conditional_tables(counts, sizes, parents, _PSEUDO_PEOPLE),
        grades=GRADES,
        grade_intercept=intercept,
        grade_weights=weights,
        grade_covariance=covariance,
        law=law,
        law_with_grades=fit_law(rows, with_grades=True),
    )
    # Rounded before use, so a model gives the same people before and after it is saved.
    model = _decode(_encode(model))
    if base_rate is None:
        return model
    drawn = model.sample(np.random.default_rng(0), _SHIFT_SAMPLE)
    shifted = replace(
        model,
        law=shifted_to(model.law, drawn, sizes, base_rate),
        law_with_grades=shifted_to(model.law_with_grades, drawn, sizes, base_rate),
    )
    return _decode(_encode(shifted))


def load(path: Path | None = None) -> SchoolModel:
    """Read a saved model; without a path, the one in the package."""
    source = path or files("sellf.envs") / "data" / "school.json"
    try:
        return _decode(json.loads(source.read_text(encoding="utf-8")))
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(
            f"{source}: not a school model ({error!r}); expected a file written by "
            "tools/build_tables.py"
        ) from error


def _strata(logit: Array, group: NDArray[np.uint8], strata: int) -> NDArray[np.uint8]:
    """Return the stratum, group * strata + class, with classes of alpha of equal size by group."""
    stratum = group.astype(np.uint8) * np.uint8(strata)
    for g in range(len(GROUPS)):
        edges = np.quantile(logit[group == g], np.arange(1, strata) / strata)
        stratum[group == g] += np.searchsorted(edges, logit[group == g]).astype(np.uint8)
    return stratum


def _fit_grades(design: Array, grades: Array) -> tuple[Array, Array, Array]:
    """Fit a ridge regression of the grades; the small penalty makes the solution unique."""
    centre, middle = design.mean(axis=0), grades.mean(axis=0)
    x, y = design - centre, grades - middle
    weights = np.linalg.solve(x.T @ x + _GRADE_PENALTY * np.eye(x.shape[1]), x.T @ y)
    left = y - x @ weights
    return middle - centre @ weights, weights, left.T @ left / len(left)


def _encode(model: SchoolModel) -> dict[str, Any]:
    """Return the model as plain lists and numbers, rounded to a fixed number of digits."""
    return {
        name: _plain(value, _DIGITS_OF_TABLES if name == "tables" else _DIGITS)
        for name, value in asdict(model).items()
    }


def _plain(value: Any, digits: int) -> Any:
    if isinstance(value, np.ndarray):
        return _plain(value.tolist(), digits)
    if isinstance(value, dict):
        return {name: _plain(item, digits) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item, digits) for item in value]
    return float(f"{value:.{digits}g}") if isinstance(value, float) else value


def _decode(raw: dict[str, Any]) -> SchoolModel:
    return SchoolModel(
        provenance=raw["provenance"],
        features=tuple(raw["features"]),
        categories=tuple(tuple(names) for names in raw["categories"]),
        groups=tuple(raw["groups"]),
        group_shares=tuple(raw["group_shares"]),
        stratum_shares=np.array(raw["stratum_shares"]),
        parents=tuple(raw["parents"]),
        order=tuple(raw["order"]),
        tables=tuple(np.array(table) for table in raw["tables"]),
        grades=tuple(raw["grades"]),
        grade_intercept=np.array(raw["grade_intercept"]),
        grade_weights=np.array(raw["grade_weights"]),
        grade_covariance=np.array(raw["grade_covariance"]),
        law=_law(raw["law"]),
        law_with_grades=_law(raw["law_with_grades"]),
    )


def _law(raw: dict[str, Any]) -> LabelLaw:
    return LabelLaw(
        intercept=raw["intercept"],
        shift=raw["shift"],
        weights=np.array(raw["weights"], np.float64),
        grade_weights=np.array(raw["grade_weights"], np.float64),
        grade_mean=np.array(raw["grade_mean"], np.float64),
        grade_std=np.array(raw["grade_std"], np.float64),
    )
