"""The data tables behind the worlds, and their sources."""

import csv
import json
from dataclasses import dataclass
from importlib.resources import files
from importlib.resources.abc import Traversable

import numpy as np
from numpy.typing import NDArray

from sellf.errors import InputError

_FILES = {
    "fico": "fico.csv",
    "fico_groups": "fico_groups.csv",
    "compas": "compas.csv",
    "school": "school.json",
}


@dataclass(frozen=True)
class Fico:
    """Credit scores of four races in ten classes of ten points, and repayment rates."""

    races: tuple[str, ...]
    p_class: NDArray[np.float64]
    """P(score class | race), (races, 10)."""
    p_repay: NDArray[np.float64]
    """P(repays | score class, race), (races, 10)."""
    shares: NDArray[np.float64]
    """Share of each race among everyone scored, (races,)."""


@dataclass(frozen=True)
class Compas:
    """Numbers of defendants and reoffenders by race, sex, age and number of prior offences."""

    races: tuple[str, ...]
    sexes: tuple[str, ...]
    ages: tuple[str, ...]
    priors: tuple[str, ...]
    n: NDArray[np.int64]
    """Number of people per cell, (2, 2, 5, 8); a few cells are empty."""
    n_reoffended: NDArray[np.int64]
    """Number of people charged again within two years, (2, 2, 5, 8)."""


def fico() -> Fico:
    """Return the data of `lending`."""
    rows, groups = _rows("fico"), _rows("fico_groups")
    races = tuple(row["race"] for row in groups)

    def column(name: str) -> NDArray[np.float64]:
        table = np.full((len(races), 10), np.nan)
        for row in rows:
            table[races.index(row["race"]), int(row["class"])] = float(row[name])
        return table

    return Fico(
        races=races,
        p_class=column("p_class"),
        p_repay=column("p_repay"),
        shares=np.array([float(row["share"]) for row in groups]),
    )


def compas() -> Compas:
    """Return the data of `recidivism`."""
    rows = _rows("compas")
    # Every cell is in the file in order, so first appearances give the names in order.
    names = [tuple(dict.fromkeys(row[key] for row in rows)) for key in _COMPAS_KEYS]
    shape = tuple(len(values) for values in names)
    races, sexes, ages, priors = names
    return Compas(
        races=races,
        sexes=sexes,
        ages=ages,
        priors=priors,
        n=np.array([int(row["n"]) for row in rows]).reshape(shape),
        n_reoffended=np.array([int(row["n_reoffended"]) for row in rows]).reshape(shape),
    )


def provenance(name: str) -> str:
    """Return source, licence and processing of a table: fico, fico_groups, compas or school."""
    text = _path(name).read_text(encoding="utf-8")
    if _FILES[name].endswith(".json"):
        return str(json.loads(text)["provenance"])
    return text.partition("\n")[0].removeprefix("#").strip()


_COMPAS_KEYS = ("race", "sex", "age_class", "priors_class")


def _path(name: str) -> Traversable:
    if name not in _FILES:
        raise InputError(f"no table named {name!r}; the tables are {', '.join(_FILES)}")
    return files("sellf.envs") / "data" / _FILES[name]


def _rows(name: str) -> list[dict[str, str]]:
    lines = _path(name).read_text(encoding="utf-8").splitlines()
    return list(csv.DictReader(line for line in lines if not line.startswith("#")))
