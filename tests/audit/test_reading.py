"""Logs as they are: any file, words for values, rows and groups that are asked for."""

import csv
import gzip
import io
import sqlite3
from collections import Counter
from datetime import date, datetime
from pathlib import Path

import narwhals as nw
import numpy as np
import pytest

import sellf
from sellf.errors import InputError
from sellf.logs.condition import parse
from sellf.logs.config import LogConfig
from sellf.logs.databases import without_password
from sellf.logs.prepare import band_names, check_date_format
from sellf.logs.reading import open_log

pytest.importorskip("duckdb")

ROWS = 300
COLUMNS = ("race", "frisked", "gun", "knife", "year", "day", "score", "age")


def stops() -> list[dict]:
    """Stops with what real files have: Y and N, blanks, codes, dates without a leading zero."""
    rng = np.random.default_rng(3)
    rows = []
    for _ in range(ROWS):
        frisked = rng.random() < 0.6
        gun, knife = (rng.random() < 0.2, rng.random() < 0.3) if frisked else (False, False)
        month, day = int(rng.integers(1, 13)), int(rng.integers(1, 29))
        rows.append({
            "race": str(rng.choice(["B", "W", "P", "Q", "Ü"])),
            "frisked": "Y" if frisked else "N",
            "gun": "Y" if gun else "N",
            "knife": "Y" if knife else "N",
            "year": int(rng.choice([2013, 2014])),
            "day": f"{month}{day:02d}2014",
            "score": int(rng.integers(300, 851)),
            "age": int(rng.integers(15, 80)),
        })  # fmt: skip
    return rows


LOG = stops()
ASKED = {
    "group": "race", "decision": "frisked", "accepted_value": "Y", "outcome": "gun | knife",
    "positive_value": "Y", "hide_rejected_outcomes": True, "groups": "Black=B,White=W",
    "notion": "predictive-parity", "seed": 0,
}  # fmt: skip


def text(rows=LOG, separator=",", **changes) -> str:
    out = io.StringIO()
    writer = csv.DictWriter(out, COLUMNS, delimiter=separator)
    writer.writeheader()
    writer.writerows([{**row, **changes} for row in rows])
    return out.getvalue()


def by_hand(rows=LOG, names=(("Black", "B"), ("White", "W"))) -> dict:
    """Return people, frisked and found by group, counted one row after the other."""
    found = {}
    for name, own in names:
        mine = [row for row in rows if row["race"] in own]
        frisked = [row for row in mine if row["frisked"] == "Y"]
        hits = [row for row in frisked if "Y" in (row["gun"], row["knife"])]
        found[name] = (len(mine), len(frisked), len(hits) / len(frisked))
    return found


def figures(result) -> dict:
    return {name: (g.people, g.accepted, g.naive) for name, g in result.by_group.items()}


def opened(options: dict, log):
    config = LogConfig.of(options)
    return open_log(log, config.columns, reading=config.reading)


def as_csv(folder: Path) -> Path:
    path = folder / "log.csv"
    path.write_text(text(), encoding="utf-8")
    return path


def as_gzip(folder: Path) -> Path:
    path = folder / "log.csv.gz"
    path.write_bytes(gzip.compress(text().encode()))
    return path


def as_parquet(folder: Path) -> Path:
    import pyarrow
    from pyarrow import parquet

    path = folder / "log.parquet"
    parquet.write_table(pyarrow.Table.from_pylist(LOG), path)
    return path


def as_workbook(folder: Path) -> Path:
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    book.active.title = "notes"
    sheet = book.create_sheet("stops")
    for row in [COLUMNS, *(tuple(row.values()) for row in LOG)]:
        sheet.append(row)
    path = folder / "log.xlsx"
    book.save(path)
    return path


def as_sqlite(folder: Path) -> Path:
    path = folder / "log.sqlite"
    with sqlite3.connect(path) as connection:
        connection.execute(f"create table stops ({', '.join(COLUMNS)})")
        marks = ", ".join("?" * len(COLUMNS))
        connection.executemany(
            f"insert into stops values ({marks})", [tuple(row.values()) for row in LOG]
        )
    connection.close()
    return path


def as_duckdb(folder: Path) -> Path:
    import duckdb
    import pyarrow

    path = folder / "log.duckdb"
    table = pyarrow.Table.from_pylist(LOG)
    connection = duckdb.connect(str(path))
    connection.register("given", table)
    connection.execute("create table stops as select * from given")
    connection.close()
    return path


KINDS = {
    "csv": (as_csv, {}),
    "csv.gz": (as_gzip, {}),
    "parquet": (as_parquet, {}),
    "xlsx": (as_workbook, {"sheet": "stops"}),
    "sqlite": (as_sqlite, {}),
    "sqlite, a query": (as_sqlite, {"query": "select * from stops where race <> 'Q'"}),
    "duckdb": (as_duckdb, {"table": "stops"}),
    "duckdb, a query": (as_duckdb, {"query": "select * from stops"}),
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_file_gives_what_counting_by_hand_gives(kind, tmp_path):
    write, options = KINDS[kind]
    found = figures(sellf.audit(write(tmp_path), **ASKED, **options))
    for name, (people, frisked, share) in by_hand().items():
        assert found[name][:2] == (people, frisked)
        assert found[name][2] == pytest.approx(share)


@pytest.mark.parametrize("kind", ["mapping", "pandas", "polars", "polars, lazy", "pyarrow"])
def test_frames_are_read_the_same_way(kind):
    table = {name: [row[name] for row in LOG] for name in COLUMNS}
    library, _, lazy = kind.partition(", ")
    log = table
    if library == "pyarrow":
        log = pytest.importorskip("pyarrow").table(table)
    elif library != "mapping":
        log = pytest.importorskip(library).DataFrame(table)
    found = figures(sellf.audit(log.lazy() if lazy else log, **ASKED))
    for name, (people, frisked, share) in by_hand().items():
        assert found[name] == (people, frisked, pytest.approx(share))


@pytest.mark.parametrize(
    ("encoding", "separator", "decimal", "options"),
    [
        ("utf-8-sig", ",", ".", {}),
        ("utf-16", ";", ".", {}),
        ("cp1252", "\t", ".", {"encoding": "cp1252"}),
        ("latin-1", "|", ",", {"encoding": "latin-1", "decimal": ",", "separator": "|"}),
    ],
)
def test_text_in_any_encoding_with_any_separator(encoding, separator, decimal, options, tmp_path):
    path = tmp_path / "log.csv"
    written = text(separator=separator).replace("850", f"850{decimal}0")
    path.write_bytes(written.encode(encoding))
    asked = ASKED | {"groups": {"Ümlaut": ["Ü"], "rest": ["B", "W", "P", "Q"]}}
    found = figures(sellf.audit(path, **asked, **options))
    expected = by_hand(names=(("Ümlaut", "Ü"), ("rest", "BWPQ")))
    assert {name: row[:2] for name, row in found.items()} == {
        name: row[:2] for name, row in expected.items()
    }


def test_quotes_of_another_kind(tmp_path):
    path = tmp_path / "log.csv"
    lines = ["race,frisked,gun,knife"]
    lines += [f"'{r['race']}, of age',{r['frisked']},{r['gun']},{r['knife']}" for r in LOG]
    path.write_text("\n".join(lines))
    groups = {"Black": ["B, of age"], "White": ["W, of age"]}
    found = figures(sellf.audit(path, **(ASKED | {"groups": groups}), quote="'", separator=","))
    assert found["Black"][:2] == by_hand()["Black"][:2]


def test_rows_left_out_by_a_condition_and_the_others_put_together(tmp_path):
    asked = ASKED | {"groups": "White=W", "other": "others"}
    where = "year = 2014 and not race in ('Q') and age >= 21"
    found = figures(sellf.audit(as_csv(tmp_path), **asked, where=where))
    kept = [r for r in LOG if r["year"] == 2014 and r["race"] != "Q" and r["age"] >= 21]
    expected = by_hand(kept, names=(("White", "W"), ("others", "BPÜ")))
    assert {name: row[:2] for name, row in found.items()} == {
        name: row[:2] for name, row in expected.items()
    }


def test_blanks_that_mean_no_and_codes_of_another_year(tmp_path):
    coded = [{**row, "gun": {"Y": "1", "N": " "}[row["gun"]]} for row in LOG]
    path = tmp_path / "log.csv"
    path.write_text(text(coded))
    values = {"positive_value": ["Y", "1"], "negative_value": ["N", " "]}
    found = figures(sellf.audit(path, **(ASKED | values)))
    assert found["Black"][2] == pytest.approx(by_hand()["Black"][2])


def test_missing_words_and_numbers_are_missing_and_others_are_not(tmp_path):
    changed = [{**row, "gun": "NA" if i % 5 == 0 else row["gun"]} for i, row in enumerate(LOG)]
    path = tmp_path / "log.csv"
    path.write_text(text(changed))
    asked = {name: value for name, value in ASKED.items() if name != "outcome"}
    result = sellf.audit(path, **asked, outcome="gun", missing_value=["NA", "-1"])
    waiting = sum(result.waiting.pending.values())
    expected = [r for r in changed if r["gun"] == "NA" and r["frisked"] == "Y"]
    assert waiting == sum(r["race"] in "BW" for r in expected)
    with pytest.raises(InputError, match="missing_value='NA'"):
        sellf.audit(path, **(asked | {"positive_value": None}), outcome="gun")


def test_scores_on_their_own_scale_and_several_accepted_values(tmp_path):
    path = as_csv(tmp_path)
    asked = {"group": "race", "decision": "race", "notion": "demographic", "seed": 0}
    asked |= {"decision": "frisked", "accepted_value": "Y", "groups": "B,W"}
    log = opened({**asked, "score": "score", "score_range": "300:850"}, path)
    expected = [(row["score"] - 300) / 550 for row in LOG if row["race"] in "BW"]
    assert sorted(log.person.prediction) == pytest.approx(sorted(expected))
    with pytest.raises(InputError, match="score_range"):
        opened({**asked, "score": "score"}, path)
    banded = {"decision": "year", "accepted_value": [2013, "2014"]}
    with pytest.raises(InputError, match="accepted people only"):
        sellf.audit(path, **(asked | banded))


@pytest.mark.parametrize(
    ("given", "form", "expected"),
    [
        (["1012014", "12312014"], "MDDYYYY", [date(2014, 1, 1), date(2014, 12, 31)]),
        (["31/12/2014", "01/02/2014"], "DD/MM/YYYY", [date(2014, 12, 31), date(2014, 2, 1)]),
        (["20140131", "20141201"], "YYYYMMDD", [date(2014, 1, 31), date(2014, 12, 1)]),
    ],
)
def test_dates_in_named_formats(given, form, expected):
    n = len(given) * 20
    log = {
        "g": ["a", "b"] * (n // 2),
        "d": [1, 1, 0, 0] * (n // 4),
        "when": [given[i % len(given)] for i in range(n)],
    }
    options = {"group": "g", "decision": "d", "time": "when", "date_format": form}
    rows = opened(options, log)
    assert Counter(rows.time.astype("datetime64[D]").tolist()) == Counter(expected * 20)


def test_bands_are_named_and_their_ends_belong_to_the_upper_one(tmp_path):
    assert band_names((25.0, 62.0)) == ["under 25", "25 to under 62", "62 or over"]
    asked = {"group": "age", "decision": "frisked", "accepted_value": "Y", "seed": 0}
    result = sellf.audit(as_csv(tmp_path), **asked, bands="age=25,62", notion="demographic")
    ages = [row["age"] for row in LOG]
    expected = {
        "under 25": sum(age < 25 for age in ages),
        "25 to under 62": sum(25 <= age < 62 for age in ages),
        "62 or over": sum(age >= 62 for age in ages),
    }
    assert {name: group.people for name, group in result.by_group.items()} == expected


FRAME = nw.from_dict(
    {"year": [2013, 2014, 2014, None], "race": [" B", "W", None, "it's"],
     "ok": [True, False, True, None],
     "on": [datetime(2014, 1, 1), datetime(2014, 6, 1, 12), None, datetime(2015, 1, 1)]},
    backend="polars",
)  # fmt: skip


@pytest.mark.parametrize(
    ("condition", "kept"),
    [
        ("year = 2014", [1, 2]),
        ("year <> 2014", [0]),
        ("not (year = 2014) or race is missing", [0, 2]),
        ("race in ('B', 'it''s')", [0, 3]),
        ("race not in ('B')", [1, 3]),
        ("\"race\" = 'W' and `year` >= 2014", [1]),
        ("ok = true", [0, 2]),
        ("on between '2014-01-01' and '2014-06-01'", [0, 1]),
        ("year = '2013' OR year is null", [0, 3]),
        ("race is not missing and year < 2014.5", [0, 1]),
    ],
)
def test_conditions_mean_what_they_say(condition, kept):
    numbered = FRAME.with_row_index("at")
    found = numbered.filter(parse(condition).expression(dict(FRAME.collect_schema())))
    assert found["at"].to_list() == kept


def test_a_query_reaches_nothing_but_its_database(tmp_path):
    secret = tmp_path / "secret.csv"
    secret.write_text("race,frisked\nB,Y\n")
    for write in (as_duckdb, as_sqlite):
        path = write(tmp_path)
        for query in (
            f"select * from read_csv('{secret}')",
            f"attach '{secret}' as other",
            "drop table stops",
            "select 1; select 2",
            "pragma table_info(stops)",
        ):
            with pytest.raises(InputError):
                sellf.audit(path, **ASKED, query=query)
    assert figures(sellf.audit(path, **ASKED))


def test_servers_need_an_extension_and_passwords_are_not_shown():
    address = "postgresql://me:hunter2@example.org/loans"
    assert "hunter2" not in without_password(address)
    assert without_password("mysql://me@example.org/x") == "mysql://me@example.org/x"
    with pytest.raises(InputError, match=r"install_extension|cannot be opened") as refused:
        sellf.audit(address, **ASKED, table="loans")
    assert "hunter2" not in str(refused.value)


def test_formats_of_dates_are_checked():
    assert check_date_format("D.M.YYYY") == ["D", "M", "YYYY"]
    for wrong in ("YYYY-MM", "%Y-%m-%d", "DDMM", "YYYY-MM-DDThh"):
        with pytest.raises(InputError, match="write years as YYYY"):
            check_date_format(wrong)
