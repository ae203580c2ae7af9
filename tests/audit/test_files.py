"""The file that was named is read, that one only, and never written over."""

import gzip
import hashlib
import json
import os
import tempfile
from pathlib import Path

import pandas as pd
import pytest

import sellf
from sellf.audit import run as audit_run
from sellf.cli import main
from sellf.errors import InputError
from sellf.logs.limits import Limits
from tests.audit.logs import COLUMNS, lending

OPTIONS = [part for name, column in COLUMNS.items() for part in (f"--{name}", column)]
MINE, OTHER = (pd.DataFrame(lending(n, seed=n)).drop(columns="hidden") for n in (300, 500))


def write(frame, path):
    path = path.absolute()  # pandas takes ~ for the home folder
    path.parent.mkdir(parents=True, exist_ok=True)
    frame.to_parquet(path) if path.suffix == ".parquet" else frame.to_csv(path, index=False)
    return path


def people(log, **options):
    found = sellf.audit(log, **COLUMNS, **options)
    return sum(group.people for group in found.by_group.values()), found.origin


@pytest.fixture(params=[2_000_000, 10], ids=["in memory", "pushed down"])
def limit(request, monkeypatch):
    monkeypatch.setattr(audit_run, "DEFAULT", Limits(in_memory=request.param))


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
@pytest.mark.parametrize(
    ("named", "beside"),
    [
        ("loans[1]", "loans1"),
        ("q?", "q1"),
        ("st*r/log", "star/log"),
        ("l*g", "log"),
        ("[!a]", "b"),
        ("{a,b}", "a"),
        ('it\'s "one"', "one"),
        ("~/log", "log"),
        ("a\\b", "ab"),
    ],
)
def test_letters_that_are_patterns_elsewhere_are_letters_here(
    limit, tmp_path, monkeypatch, named, beside, suffix
):
    monkeypatch.chdir(tmp_path)
    write(MINE, Path(named + suffix))
    write(OTHER, Path(beside + suffix))
    count, origin = people(named + suffix)
    assert count == 300
    assert origin.files == [named + suffix]
    assert origin.fingerprint == hashlib.sha256(Path(named + suffix).read_bytes()).hexdigest()


def test_the_name_of_a_folder_is_no_column(limit, tmp_path):
    for name in ("log.csv", "log.parquet"):
        path = write(MINE, tmp_path / "p=0.99" / "race=c" / name)
        found = sellf.audit(path, **COLUMNS, seed=1)
        assert found.difference == pytest.approx(sellf.audit(MINE, **COLUMNS, seed=1).difference)


def test_several_files_by_a_pattern_or_a_list(limit, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write(MINE, Path("part-1.csv"))
    write(OTHER[OTHER.columns[::-1]], Path("part-2.csv"))  # its columns in another order
    write(MINE, Path("[x]/part-3.csv"))
    write(MINE, Path("x/part-4.csv"))
    both = sellf.audit(pd.concat([MINE, OTHER]), **COLUMNS, seed=1)
    for log in ("part-*.csv", ["part-1.csv", Path("part-2.csv")], ("part-1.csv", "part-2.csv")):
        found = sellf.audit(log, **COLUMNS, seed=1)
        assert found.difference == pytest.approx(both.difference)
        assert found.origin.files == ["part-1.csv", "part-2.csv"]
        assert "the 2 files part-1.csv, part-2.csv" in found.origin.fingerprint_of
    assert found.origin.command.startswith("sellf.audit(['part-1.csv', 'part-2.csv'], group=")
    assert people("[x]/*.csv")[1].files == ["[x]/part-3.csv"]


@pytest.mark.parametrize(
    ("log", "message"),
    [
        ("q?.csv", r"there is no file q\?.csv"),
        ("log[1].csv", "there is no file"),
        ("no*.csv", r"there is no file no\*.csv"),
        ("*", "not a kind of file"),
        (["log1.csv", "gone.csv"], "there is no file gone.csv"),
        (["log1.csv", "log2.parquet"], "of several kinds: give CSV or Parquet files only"),
        (["log1.csv", "short.csv"], "short.csv has other columns than log1.csv: it lacks 'p'"),
        (["short.csv", "log1.csv"], "log1.csv has other columns than short.csv: it also has 'p'"),
        ([], "the log is a list"),
        ("pipe.csv", "pipe.csv is not a regular file"),
        ("b\\[1].csv", "cannot be read under this name: rename it"),
    ],
)
def test_files_that_were_not_named_are_not_read(tmp_path, monkeypatch, log, message):
    monkeypatch.chdir(tmp_path)
    write(MINE, Path("log1.csv"))
    write(MINE, Path("q1.csv"))
    write(MINE, Path("log2.parquet"))
    write(MINE.drop(columns="p"), Path("short.csv"))
    write(MINE, Path("b\\[1].csv"))
    Path("notes").write_text("x")
    os.mkfifo("pipe.csv")
    with pytest.raises(InputError, match=message):
        sellf.audit(log, **COLUMNS)


def test_compressed_files_are_read_and_their_repeated_columns_seen(tmp_path):
    text = MINE.to_csv(index=False)
    (tmp_path / "log.csv.gz").write_bytes(gzip.compress(text.encode()))
    assert people(tmp_path / "log.csv.gz")[0] == 300
    lines = text.splitlines()
    twice = "\n".join([lines[0] + ",p", *(line + ",0.5" for line in lines[1:])])
    (tmp_path / "twice.csv.gz").write_bytes(gzip.compress(twice.encode()))
    with pytest.raises(InputError, match="2 columns named 'p'"):
        sellf.audit(tmp_path / "twice.csv.gz", **COLUMNS)
    # ProPublica's file has columns twice that hold the same.
    copied = pd.concat([MINE, MINE[["p", "race"]]], axis=1).to_csv(index=False)
    (tmp_path / "copied.csv").write_text(copied)
    write(MINE, tmp_path / "once.csv")
    once, found = (
        sellf.audit(tmp_path / name, **COLUMNS, seed=1) for name in ("once.csv", "copied.csv")
    )
    assert found.difference == once.difference
    (tmp_path / "no.csv.gz").write_bytes(b"no gzip")
    with pytest.raises(InputError, match=r"no.csv.gz cannot be read"):
        sellf.audit(tmp_path / "no.csv.gz", **COLUMNS)


def test_repeated_columns_are_taken_alike_from_a_file_and_from_memory(tmp_path):
    import pyarrow as pa
    from pyarrow import parquet

    once, repaid = sellf.audit(MINE, **COLUMNS, seed=1), MINE["repaid"]
    of_another_kind = repaid.map({1: "1", 0: "0"})
    for again in (repaid, repaid.fillna(0), of_another_kind):
        twice = pd.concat([MINE, again], axis=1)
        columns = [pa.array(twice.iloc[:, i]) for i in range(twice.shape[1])]
        table = pa.Table.from_arrays(columns, names=list(twice.columns))
        parquet.write_table(table, tmp_path / "twice.parquet")
        for log in (twice, table, tmp_path / "twice.parquet"):
            if again is repaid:
                assert sellf.audit(log, **COLUMNS, seed=1).difference == once.difference
            else:
                with pytest.raises(InputError, match="2 columns named 'repaid'"):
                    sellf.audit(log, **COLUMNS)


def test_a_temporary_folder_with_quotes_in_its_name(limit, tmp_path, monkeypatch):
    folder = tmp_path / 'it\'s; "here"'
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    assert people(write(MINE, tmp_path / "log.csv"))[0] == 300


@pytest.mark.parametrize("link", [None, "symbolic", "hard", "pattern"])
def test_output_never_replaces_the_log(tmp_path, capsys, monkeypatch, link):
    monkeypatch.chdir(tmp_path)
    path = write(MINE, tmp_path / "log.csv")
    before = path.read_bytes()
    target = {None: "./log.csv", "pattern": str(path)}.get(link, "link.html")
    if link == "symbolic":
        Path("link.html").symlink_to("log.csv")
    if link == "hard":
        Path("link.html").hardlink_to("log.csv")
    log = "l*.csv" if link == "pattern" else "log.csv"
    assert main(["audit", log, *OPTIONS, "--html", target]) == 2
    error = capsys.readouterr().err
    assert f"--html {Path(target)} is read by this command" in error
    assert path.read_bytes() == before
    assert Path("link.html").is_symlink() == (link == "symbolic")


def test_output_goes_to_regular_files_only(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write(MINE, Path("log.csv"))
    os.mkfifo("pipe.csv")
    Path("null.csv").symlink_to("/dev/null")
    Path("folder.csv").mkdir()
    for name in ("pipe.csv", "null.csv", "folder.csv"):
        for command in (["log.csv", *OPTIONS, "--html"], ["--example", "--save"]):
            assert main(["audit", *command, name]) == 2
            shown = capsys.readouterr()
            assert f"{name} is " in shown.err
            assert "name" in shown.err
            assert shown.out == ""
    assert Path("pipe.csv").is_fifo()
    assert Path("null.csv").readlink() == Path("/dev/null")
    assert main(["audit", "--example", "--save", "x.csv", "--html", "./x.csv"]) == 2
    assert "give each a file of its own" in capsys.readouterr().err
    assert not Path("x.csv").exists()
    Path("real.html").write_text("old")
    Path("link.html").symlink_to("real.html")
    assert main(["audit", "log.csv", *OPTIONS, "--html", "link.html"]) == 0
    assert Path("link.html").is_symlink()
    assert Path("real.html").read_text().rstrip().endswith("</html>")


def test_the_files_are_kept_with_the_audit(tmp_path, capsys):
    path = write(MINE, tmp_path / "log.csv")
    assert main(["audit", str(path), *OPTIONS, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["origin"]["files"] == [str(path)]
    assert sellf.audit(MINE, **COLUMNS).origin.files == []
