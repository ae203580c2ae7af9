"""Propensities estimated on a sample and predicted where the rows lie."""

import shutil
import sys
from importlib import import_module

import narwhals as nw
import numpy as np
import pytest

import sellf
from sellf.audit import cells
from sellf.audit.cells import FOLDS, by_fold, mixed, sampled
from sellf.errors import InputError

duckdb = pytest.importorskip("duckdb")
pytest.importorskip("sklearn")
pyarrow = pytest.importorskip("pyarrow")

SMALL = sellf.Limits(in_memory=100, fetched=0)
ASKED = {"group": "race", "decision": "approved", "outcome": "repaid", "seed": 3}


def log(people=4000, seed=0, digits=3):
    """Return a log whose decisions depend on x and a word, and what everyone's outcome is."""
    rng = np.random.default_rng(seed)
    race = rng.choice(["a", "b"], people)
    x = rng.random(people).round(digits)
    branch = rng.choice(["north", "south"], people)
    p = 0.15 + 0.6 * x + 0.1 * (branch == "north")
    approved = (rng.random(people) < p).astype(int)
    good = rng.random(people) < np.where(race == "a", 0.3, 0.2) + 0.5 * x
    label = [float(y) if d else None for y, d in zip(good, approved, strict=True)]
    table = pyarrow.table(
        {"race": race, "x": x, "branch": branch, "approved": approved, "repaid": label}
    )
    shares = [good[race == name].mean() for name in ("a", "b")]
    return table, abs(shares[0] - shares[1])


def in_duckdb(table):
    return duckdb.connect().from_arrow(table)


def figures(result):
    return np.array([[g.low, g.value, g.high] for g in result.by_group.values()])


@pytest.fixture(scope="module")
def audited():
    table, truth = log()
    asked = {**ASKED, "features": ["x", "branch"], "notion": "qualification", "limits": SMALL}
    return table, truth, sellf.audit(in_duckdb(table), **asked), asked


def test_the_truth_is_inside_and_memory_says_nearly_the_same(audited):
    table, truth, found, asked = audited
    assert found.difference.low <= truth <= found.difference.high
    memory = sellf.audit(table, **{**asked, "limits": None})
    assert np.abs(figures(found) - figures(memory)).max() < 0.02
    assert found.method == memory.method


def test_neither_the_order_of_rows_nor_the_engine_matters(audited):
    table, _, found, asked = audited
    pl = pytest.importorskip("polars")
    mixed_up = table.take(np.random.default_rng(1).permutation(len(table)))
    again = sellf.audit(in_duckdb(mixed_up), **asked)
    other = sellf.audit(pl.from_arrow(mixed_up).lazy(), **asked)
    assert np.abs(figures(found) - figures(again)).max() < 1e-9
    assert np.abs(figures(found) - figures(other)).max() < 1e-9


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:PySpark does not yet fully support:FutureWarning")
def test_spark_says_the_same_or_what_its_workers_lack(audited, monkeypatch):
    table, _, found, asked = audited
    sql = pytest.importorskip("pyspark.sql")
    if shutil.which("java") is None:
        pytest.skip("Spark needs Java")
    # Otherwise workers run with the first python3 of the path, which need not have sellf.
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    spark = sql.SparkSession.builder.master("local[1]").getOrCreate()
    try:
        frame = spark.createDataFrame(table)
        other = sellf.audit(frame, **asked)
        with pytest.raises(InputError, match=r"cannot import 'absent_on_workers'.*PYSPARK_PYTHON"):
            cells.over(nw.from_native(frame), _needs("absent_on_workers"), table.schema)
    finally:
        spark.stop()
    assert np.abs(figures(found) - figures(other)).max() < 1e-6


def _needs(module):
    """Return a function of batches that imports a module first."""

    def work(batches):
        import_module(module)
        yield from batches

    return work


def test_a_sample_and_few_different_rows_are_enough():
    table, truth = log(people=6000, seed=1, digits=1)
    limits = sellf.Limits(in_memory=100, fetched=0, fitted=2000)
    asked = {**ASKED, "features": ["x", "branch"], "notion": "qualification", "limits": limits}
    for model in ("boosting", "logistic"):
        found = sellf.audit(in_duckdb(table), model=model, **asked)
        assert found.difference.low <= truth <= found.difference.high
        assert found.difference.high - found.difference.low < 0.2


def test_outcomes_that_are_not_known_yet_widen_the_interval(audited):
    table, _, found, asked = audited
    label = table["repaid"].to_pylist()
    label = [None if i % 10 == 0 else y for i, y in enumerate(label)]
    part = table.set_column(4, "repaid", pyarrow.array(label, pyarrow.float64()))
    wide = sellf.audit(in_duckdb(part), **asked)
    assert wide.difference.high - wide.difference.low > (
        found.difference.high - found.difference.low
    )
    pending = sum(wide.waiting.pending.values())
    approved = table["approved"].to_pylist()
    assert pending == sum(d for i, d in enumerate(approved) if i % 10 == 0)


def test_every_row_is_in_one_fold_and_the_sample_has_its_share():
    count = np.random.default_rng(0).integers(1, 20, 5000)
    own = mixed(np.arange(5000, dtype=np.uint64))
    folds = by_fold(count, own)
    assert (folds.sum(axis=1) == count).all()
    assert np.ptp(folds, axis=1).max() <= 1
    assert np.abs(folds.sum(axis=0) / count.sum() - 1 / FOLDS).max() < 0.01
    drawn = sampled(folds, own, 0.1)
    assert (drawn <= folds).all()
    assert abs(drawn.sum() / count.sum() - 0.1) < 0.01
