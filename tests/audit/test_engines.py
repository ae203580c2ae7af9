"""Wherever a log lives the audit is the same, and long ones are added up where they live."""

import importlib.util
import shutil

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import sellf
from sellf.audit import run as audit_run
from sellf.errors import InputError
from sellf.logs import reading
from sellf.logs.binary import Meant
from sellf.logs.columns import Columns
from sellf.logs.lazy import LazyLog
from sellf.logs.limits import Limits
from sellf.logs.sums import Sums, add_up
from tests.audit.logs import COLUMNS, lending

LOG = lending(2000)
FRAME = pd.DataFrame({name: values for name, values in LOG.items() if name != "hidden"})
NAMES = Columns(("race",), "approved", "repaid", "p", "score")


@pytest.fixture(scope="session")
def spark():
    if shutil.which("java") is None:
        pytest.skip("Spark needs Java")
    pytest.importorskip("pyspark")
    import warnings

    from pyspark.sql import SparkSession

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        session = (
            SparkSession.builder.master("local[1]")
            .config("spark.ui.enabled", "false")
            .config("spark.sql.shuffle.partitions", "1")
            .config("spark.driver.host", "localhost")
            .config("spark.log.level", "ERROR")
            .getOrCreate()
        )
        yield session
        session.stop()


def frames(tmp_path):
    FRAME.to_parquet(tmp_path / "log.parquet")
    FRAME.to_csv(tmp_path / "log.csv", index=False)
    FRAME.to_csv(tmp_path / "log.tsv", index=False, sep="\t")
    half = len(FRAME) // 2
    FRAME.iloc[:half].to_parquet(tmp_path / "part-1.parquet")
    FRAME.iloc[half:].to_parquet(tmp_path / "part-2.parquet")
    return {
        "mapping": {name: list(values) for name, values in LOG.items()},
        "pandas": FRAME,
        "pandas, arrow types": FRAME.convert_dtypes(dtype_backend="pyarrow"),
        "polars": pl.from_pandas(FRAME),
        "polars, lazy": pl.from_pandas(FRAME).lazy(),
        "pyarrow": pa.Table.from_pandas(FRAME),
        "duckdb": duckdb.from_df(FRAME),
        "parquet": tmp_path / "log.parquet",
        "several": str(tmp_path / "part-*.parquet"),
        "csv": str(tmp_path / "log.csv"),
        "tsv": tmp_path / "log.tsv",
    }


def test_every_kind_of_log_gives_the_same_figures(tmp_path):
    known = sellf.audit(LOG, **COLUMNS, seed=1)
    for name, log in frames(tmp_path).items():
        found = sellf.audit(log, **COLUMNS, seed=1)
        assert found.difference == pytest.approx(known.difference, abs=1e-9), name
        assert found.verdict == known.verdict, name


def lazy(log, columns=NAMES):
    opened = reading.open_log(log, columns, Limits(in_memory=10))
    assert isinstance(opened, LazyLog)
    return opened


def assert_same(mine: Sums, theirs: Sums):
    for name, a, b in zip(Sums._fields, mine, theirs, strict=True):
        assert a == pytest.approx(b, rel=1e-9, abs=1e-9), name


@pytest.mark.parametrize("propensity", ["p", None])
@pytest.mark.parametrize("score", ["score", None])
@pytest.mark.parametrize("overlap", [0.01, 0.3])
def test_engines_add_up_what_numpy_adds_up(propensity, score, overlap):
    columns = Columns(("race",), "approved", "repaid", propensity, score)
    rows = reading.open_log(LOG, columns)
    mine = add_up(rows.codes, 2, rows.person, overlap)
    for log in (duckdb.from_df(FRAME), pl.from_pandas(FRAME).lazy()):
        names, theirs = lazy(log, columns).sums(overlap)
        assert names == ["a", "b"]
        assert_same(mine, theirs)


def test_spark_adds_up_what_numpy_adds_up_and_judges_the_same(spark, tmp_path):
    path = str(tmp_path / "log.parquet")
    days = np.where(np.arange(2000) < 200, 120, 3).astype("timedelta64[D]")
    # Spark reads microseconds, and no finer.
    FRAME.assign(date=(np.datetime64("2025-01-01") + days).astype("datetime64[us]")).to_parquet(
        path
    )
    frame = spark.read.parquet(path)
    rows = reading.open_log(LOG, NAMES)
    names, theirs = lazy(frame).sums(0.01)
    assert names == ["a", "b"]
    assert_same(add_up(rows.codes, 2, rows.person, 0.01), theirs)
    found, known = (sellf.audit(same, **COLUMNS, seed=1) for same in (frame, LOG))
    assert found.difference == pytest.approx(known.difference, abs=1e-9)
    dated = Columns(("race",), "approved", "repaid", "p", time="date")
    periods, sums = lazy(frame, dated).sums_by(0.01, "quarter")
    assert periods == ["2025-Q1", "2025-Q2"]
    assert [part.people.sum() for part in sums] == [1800, 200]
    dotted = frame.withColumnRenamed("race", "applicant.race")
    with pytest.raises(InputError, match="rename it with withColumnRenamed"):
        sellf.audit(dotted, **{**COLUMNS, "group": "applicant.race"})
    spelled = FRAME.assign(
        race=np.where(np.arange(2000) % 3 == 0, FRAME["race"] + " ", FRAME["race"])
    )
    spelled["approved"] = np.where(FRAME["approved"] == 1, "yes", " no")
    frame = spark.createDataFrame(spelled)
    words = Columns(("race",), "approved", "repaid", "p", "score", decided=Meant(("yes",)))
    names, theirs = lazy(frame, words).sums(0.01)
    assert names == ["a", "b"]
    assert_same(add_up(rows.codes, 2, rows.person, 0.01), theirs)
    assert lazy(frame, words).of_groups(["a"]).collect().shape[0] == (LOG["race"] == "a").sum()


def test_a_long_log_is_judged_by_sums_and_its_small_groups_by_rows(monkeypatch):
    """With the limits lowered: group a is large, b is small enough to be fetched."""
    log = lending(3000)
    keep = (log["race"] == "a") | (np.arange(3000) < 600)
    frame = pd.DataFrame({name: values[keep] for name, values in log.items()})
    small = int((frame["race"] == "b").sum())
    limits = Limits(in_memory=500, fetched=small)
    found = sellf.audit(duckdb.from_df(frame), **COLUMNS, seed=1, limits=limits)
    assert [found.by_group[name].method for name in "ab"] == ["sums", "betting"]
    whole = sellf.audit(frame, **COLUMNS, seed=1)
    # A log in memory is bet on row by row: the same for b, and narrower for a.
    assert whole.by_group["b"][:8] == pytest.approx(found.by_group["b"][:8], abs=1e-9)
    assert whole.by_group["b"].method == "betting"
    assert whole.by_group["a"].value == pytest.approx(found.by_group["a"].value, abs=1e-9)
    for mine, wide in [
        (whole.by_group["a"], found.by_group["a"]),
        (whole.difference, found.difference),
    ]:
        assert wide.low <= mine.low <= mine.high <= wide.high


def test_groups_from_several_columns(monkeypatch):
    rng = np.random.default_rng(5)
    frame = FRAME.assign(sex=rng.choice(["f", "m"], len(FRAME)))
    options = {**COLUMNS, "group": ["race", "sex"], "seed": 1}
    known = sellf.audit(frame, **options)
    assert list(known.by_group) == [("a", "f"), ("a", "m"), ("b", "f"), ("b", "m")]
    assert "a/f" in str(known)
    assert len(known.pairs) == 6
    monkeypatch.setattr(audit_run, "DEFAULT", Limits(in_memory=10))
    pushed = sellf.audit(duckdb.from_df(frame), **options)
    assert pushed.difference == pytest.approx(known.difference, abs=1e-9)


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        ("approved", 2.0, "decision 'approved' has 3 values"),
        ("approved", None, "decision 'approved' is missing in 1 rows"),
        ("race", None, "group 'race' is missing in 1 rows"),
        ("p", 1.5, r"outside \[0, 1\] in 1 rows \(for example 1.5\)"),
        ("p", None, "missing or outside"),
        ("p", 0.0, "is 0 for 1 accepted rows"),
        ("score", -1.0, "score 'score' is missing or outside"),
        ("repaid", 3.0, "outcome 'repaid' has 3 values"),
    ],
)
def test_engines_refuse_what_cannot_be_used(column, value, message):
    row = int(np.flatnonzero(LOG["approved"] == 1)[0])
    frame = FRAME.astype({"approved": "float64"})
    frame.loc[row, column] = value
    for log in (duckdb.from_df(frame), pl.from_pandas(frame).lazy()):
        with pytest.raises(InputError, match=message):
            lazy(log).sums(0.01)


def test_engines_follow_what_the_user_says_of_values():
    row = int(np.flatnonzero(LOG["approved"] == 1)[0])
    frame = FRAME.copy()
    frame.loc[row, "repaid"] = None
    frame["approved"] = np.where(frame["approved"] == 1, "yes", "no")
    frame["risk"] = 1 - frame["score"]
    columns = Columns(
        ("race",), "approved", "repaid", "p", "risk", decided=Meant(("yes",)), score_is_risk=True
    )
    rows = reading.open_log(frame, columns)
    _, theirs = lazy(duckdb.from_df(frame), columns).sums(0.01)
    assert theirs.pending.sum() == rows.pending == 1
    assert_same(add_up(rows.codes, 2, rows.person, 0.01), theirs)


def test_columns_of_the_log_are_not_taken_for_those_made_on_the_way(monkeypatch):
    names = {"race": "accepted", "approved": "f", "repaid": "weak", "p": "score", "score": "p"}
    frame = FRAME.rename(columns=names)
    options = {option: names[name] for option, name in COLUMNS.items()}
    known = sellf.audit(frame, **options)
    found = sellf.audit(duckdb.from_df(frame), **options, limits=Limits(in_memory=10, fetched=10))
    assert found.difference.value == pytest.approx(known.difference.value)


def test_a_long_log_is_followed_over_time_by_its_sums(monkeypatch):
    rng = np.random.default_rng(6)
    frame = FRAME.assign(date=np.datetime64("2025-01-01", "s") + rng.integers(0, 31536000, 2000))
    options = {**COLUMNS, "time": "date", "by": "quarter"}
    known = sellf.audit(frame, **options).periods
    monkeypatch.setattr(audit_run, "DEFAULT", Limits(in_memory=10))
    for log in (duckdb.from_df(frame), pl.from_pandas(frame).lazy()):
        found = sellf.audit(log, **options).periods
        for mine, theirs in zip(known, found, strict=True):
            assert (mine.name, mine.people) == (theirs.name, theirs.people)
            assert mine.value == pytest.approx(theirs.value, abs=0.03)
            assert theirs.low <= mine.value <= theirs.high


def test_propensities_of_a_log_that_stays_in_its_engine_are_estimated_there(monkeypatch):
    monkeypatch.setattr(audit_run, "DEFAULT", Limits(in_memory=10))
    options = {**COLUMNS, "propensity": None}
    found = sellf.audit(duckdb.from_df(FRAME), **options)
    assert not found.finite_sample
    assert "asymptotic" in str(found)


def test_files_say_what_to_install_without_duckdb(monkeypatch, tmp_path):
    (tmp_path / "log.csv").write_text("a\n1\n")
    find = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == "duckdb" else find(name)
    )
    with pytest.raises(InputError, match=r"pip install 'sellf\[audit\]'"):
        sellf.audit(tmp_path / "log.csv", **COLUMNS)


@pytest.mark.parametrize("column", ["repaid", "p", "approved"])
def test_a_parquet_file_with_nan_says_the_same_from_disk_and_from_memory(tmp_path, column):
    """DuckDB's own `isnan` believes a file's statistics, and these leave NaN out."""
    import pyarrow.parquet as pq

    log = lending(3000)
    log = {name: np.asarray(values) for name, values in log.items()}
    log["approved"] = log["approved"].astype(float)
    if column != "repaid":
        log[column] = log[column].copy()
        log[column][5] = np.nan
    assert np.isnan(log["repaid"]).any()
    pq.write_table(pa.table(log), tmp_path / "log.parquet")

    def said(source, limits):
        try:
            return sellf.audit(source, **COLUMNS, seed=1, limits=limits).naive
        except InputError as error:
            return str(error).split(" is ")[0]

    here = said(log, None)
    there = said(str(tmp_path / "log.parquet"), Limits(in_memory=100))
    assert here == there
    assert isinstance(here, str) == (column != "repaid")
