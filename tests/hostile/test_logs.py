"""Logs that once ended in a traceback, a page of text, or another column than the one named."""

import gzip

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sellf
from sellf.audit import run as audit_run
from sellf.cli import main
from sellf.errors import InputError
from sellf.logs.limits import DEFAULT, Limits

ROWS = 40
OPTIONS = {"group": "race", "decision": "approved", "notion": "demographic", "seed": 1}
TYPED = ["--group", "race", "--decision", "approved", "--notion", "demographic"]


def log(**columns):
    usual = {"race": ["a", "b"] * (ROWS // 2), "approved": [1, 1, 0, 0] * (ROWS // 4)}
    return pa.table(usual | columns)


@pytest.fixture(params=["in memory", "in its engine"])
def limit(request, monkeypatch):
    rows = 0 if request.param == "in its engine" else DEFAULT.in_memory
    monkeypatch.setattr(audit_run, "DEFAULT", Limits(in_memory=rows))


def test_a_column_of_people_without_any_is_no_matter(tmp_path, limit):
    pq.write_table(log(id=pa.nulls(ROWS, pa.int64())), tmp_path / "log.parquet")
    assert sellf.audit(tmp_path / "log.parquet", **OPTIONS).by_group.keys() == {"a", "b"}


def test_a_damaged_compressed_file_is_refused(tmp_path, capsys):
    packed = bytearray(gzip.compress(b"race,approved\n" + b"a,1\nb,0\n" * 500))
    packed[20:60] = bytes(40)
    (tmp_path / "log.csv.gz").write_bytes(packed)
    assert main(["audit", str(tmp_path / "log.csv.gz"), *TYPED]) == 2
    assert "log.csv.gz cannot be read" in capsys.readouterr().err


def test_a_compressed_file_with_a_wrong_checksum_is_refused(tmp_path, capsys):
    packed = bytearray(gzip.compress(b"race,approved\n" + b"a,1\nb,0\n" * 500))
    packed[-6] ^= 1
    (tmp_path / "log.csv.gz").write_bytes(packed)
    assert main(["audit", str(tmp_path / "log.csv.gz"), *TYPED]) == 2
    assert "CRC check failed" in capsys.readouterr().err


def test_a_compressed_file_in_several_parts_is_read_to_the_end(tmp_path):
    parts = (b"race,approved\n" + b"a,1\nb,0\n" * 50, b"a,0\nb,1\n" * 50)
    (tmp_path / "log.csv.gz").write_bytes(b"".join(map(gzip.compress, parts)))
    assert sellf.audit(tmp_path / "log.csv.gz", **OPTIONS).origin.rows == 200


@pytest.mark.parametrize("note", ["'", "'tis", "O'Brien", "it's '"])
def test_apostrophes_swallow_no_rows(tmp_path, limit, note):
    frame = log(note=[note, "plain", "x", note] * (ROWS // 4)).to_pandas()
    frame.to_csv(tmp_path / "log.csv", index=False, sep=";")
    found = sellf.audit(tmp_path / "log.csv", **OPTIONS)
    assert found.origin.rows == ROWS
    assert found.difference == sellf.audit(frame, **OPTIONS).difference


def test_dates_with_blanks_around_them_are_dates():
    days = [" 2026-01-01", "2026-02-01 "] * (ROWS // 2)
    found = sellf.audit(log(day=days), **OPTIONS, time="day", by="month")
    assert [period.name for period in found.periods] == ["2026-01", "2026-02"]


def test_a_date_in_a_year_that_no_calendar_has(tmp_path, capsys, limit):
    days = ["2026-01-01"] * (ROWS - 1) + ["22026-03-05"]
    table = log(day=days, repaid=[1, 1, None, None] * (ROWS // 4)).to_pandas()
    table.to_csv(tmp_path / "log.csv", index=False)
    options = ["--outcome", "repaid", "--decided-on", "day", "--matures-after", "30d"]
    typed = ["audit", str(tmp_path / "log.csv"), *TYPED[:4], *options]
    assert main(typed) == 2
    told = capsys.readouterr().err
    assert "decided_on 'day'" in told
    assert "give dates of the years 1 to 9999" in told


def test_a_repeated_column_that_is_not_used_is_no_matter(tmp_path, limit):
    table = log(note=["x"] * ROWS, other=["y"] * ROWS).rename_columns(
        ["race", "approved", "note", "note"]
    )
    pq.write_table(table, tmp_path / "log.parquet")
    answers = [
        sellf.audit(source, **OPTIONS).difference
        for source in (tmp_path / "log.parquet", table, table.to_pandas())
    ]
    assert answers[0] == answers[1] == answers[2]


def test_a_repeated_column_that_is_used_is_refused(tmp_path, limit):
    table = log(other=[0] * ROWS).rename_columns(["race", "approved", "approved"])
    pq.write_table(table, tmp_path / "log.parquet")
    for source in (tmp_path / "log.parquet", table, table.to_pandas()):
        with pytest.raises(InputError, match="has 2 columns named 'approved'"):
            sellf.audit(source, **OPTIONS)


def test_parts_of_a_column_are_no_columns(tmp_path, limit):
    parts = pa.array([{"race": {"approved": 1}, "x": [1, 2]}] * ROWS)
    table = pa.table({"parts": parts, **dict(zip(log().column_names, log().columns, strict=True))})
    pq.write_table(table, tmp_path / "log.parquet")
    assert sellf.audit(tmp_path / "log.parquet", **OPTIONS).by_group.keys() == {"a", "b"}


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_capital_letters_tell_columns_apart(tmp_path, limit, kind):
    frame = log(RACE=["x", "y", "z", "z"] * (ROWS // 4)).to_pandas()[["RACE", "race", "approved"]]
    path = tmp_path / f"log.{kind}"
    frame.to_csv(path, index=False) if kind == "csv" else frame.to_parquet(path, index=False)
    for name, groups in (("race", "ab"), ("RACE", "xyz")):
        found = sellf.audit(path, **OPTIONS | {"group": name})
        assert found.by_group.keys() == set(groups)
    with pytest.raises(InputError, match="differ only in case"):
        sellf.audit(path, **OPTIONS | {"group": ["race", "RACE"]})


@pytest.mark.parametrize("header", ["x" * 100_000, ",".join(f"column {i}" for i in range(5000))])
def test_a_very_long_header_is_told_of_in_a_sentence(tmp_path, capsys, header):
    (tmp_path / "log.csv").write_text(f"{header}\n1\n2\n")
    assert main(["audit", str(tmp_path / "log.csv"), *TYPED]) == 2
    told = capsys.readouterr().err
    assert "the log has no column" in told or "line 2 has 1 values and the header 5000" in told
    assert len(told) < 4000


@pytest.mark.parametrize("value", [[1, 2], {"a": 1}])
def test_decisions_with_parts_are_refused(tmp_path, limit, value):
    table = log().set_column(1, "approved", pa.array([value] * ROWS))
    pq.write_table(table, tmp_path / "log.parquet")
    with pytest.raises(InputError, match="decision 'approved'"):
        sellf.audit(tmp_path / "log.parquet", **OPTIONS)


@pytest.mark.parametrize("value", [[1, 2], {"a": 1}])
def test_groups_with_parts_are_refused(tmp_path, limit, value):
    table = log().set_column(0, "race", pa.array([value] * ROWS))
    pq.write_table(table, tmp_path / "log.parquet")
    with pytest.raises(InputError, match="group 'race'"):
        sellf.audit(tmp_path / "log.parquet", **OPTIONS)


def test_a_frame_keeps_its_own_index_and_order():
    frame = pd.concat([log().to_pandas(), log().to_pandas()[["race"]]], axis=1)
    frame.columns = ["race", "approved", "approved "]
    assert sellf.audit(frame, **OPTIONS).by_group.keys() == {"a", "b"}


@pytest.mark.parametrize("mark", [",", ";", "\t", "|"])
def test_a_column_name_with_a_line_break_is_read_from_a_file_as_in_memory(tmp_path, mark):
    table = log().to_pandas().rename(columns={"race": "race\nof applicant"})
    table.to_csv(tmp_path / "log.csv", index=False, sep=mark)
    options = OPTIONS | {"group": "race\nof applicant"}
    found = [sellf.audit(source, **options) for source in (tmp_path / "log.csv", table)]
    assert found[0].difference == found[1].difference
    assert found[0].by_group == found[1].by_group


def test_a_quote_in_the_header_that_is_never_closed_is_refused_in_a_sentence(tmp_path, capsys):
    (tmp_path / "log.csv").write_text('"race,approved\n' + "a,1\nb,0\n" * 20)
    assert main(["audit", str(tmp_path / "log.csv"), *TYPED]) == 2
    assert "cannot be read" in capsys.readouterr().err
