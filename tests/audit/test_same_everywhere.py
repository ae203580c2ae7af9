"""The same rows give the same groups and counts, or the same refusal, wherever they live."""

import re

import duckdb
import numpy as np
import pandas as pd
import polars as pl
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sellf.errors import InputError
from sellf.logs import reading
from sellf.logs.binary import Meant, values_of
from sellf.logs.columns import Columns
from sellf.logs.lazy import LazyLog
from sellf.logs.limits import Limits
from sellf.logs.names import say
from sellf.logs.sums import add_up

groups = st.sampled_from(
    [
        ["a", "b"],
        ["a", " a", "a ", "b", "b\t", "A"],
        ["a", "b", "", "  ", None],
        ["a", 1, 1.0, "1", " 1 ", 2],
        [1, 2, 3.0],
        [1.5, 2.0, None],
        ["x, y", 'q"', "é", "\u00a0é"],
        [True, False],
        [True, "true", "a"],
    ]
)
decisions = st.sampled_from(
    [
        ([0, 1], None),
        ([0, 1, "1", " 0"], None),
        ([0.0, 1.0], None),
        (["yes", "no", " yes", "no "], "yes"),
        (["yes", "no"], "yes"),
        (["t", "f"], "T"),
        ([True, False], None),
        ([True, "false", "TRUE"], None),
        ([0, 1, None], None),
        ([0, 1, 2], None),
        (["yes", "no", " "], "yes"),
        ([1], None),
    ]
)
outcomes = st.sampled_from(
    [
        ([0, 1], None),
        ([0, 1, None], None),
        (["paid", "late", None, " paid", "", "  "], "paid"),
        ([0, 1, 2], None),
        ([None], None),
        (["1", "0 ", " "], None),
    ]
)


@st.composite
def logs(draw):
    rows = draw(st.integers(4, 14))
    pool, accepted = draw(decisions)
    kinds, positive = draw(outcomes)
    pick = lambda values: draw(st.lists(st.sampled_from(values), min_size=rows, max_size=rows))  # noqa: E731
    approved, repaid = pick(pool), pick(kinds)
    if draw(st.booleans()):  # as it should be: outcomes of the accepted only
        good = ("1", "true", "yes", "1.0")
        repaid = [
            y if str(a).strip().lower() in good else None
            for a, y in zip(approved, repaid, strict=True)
        ]
    log = {
        "race": pick(draw(groups)),
        "approved": approved,
        "repaid": repaid,
        "p": pick(draw(st.sampled_from([[0.5, 0.25], [0.5, 0.0], [0.5, 1.0], [0.5, None, 2]]))),
    }
    columns = Columns(
        ("race",),
        "approved",
        draw(st.sampled_from(["repaid", "repaid", None])),
        draw(st.sampled_from(["p", None])),
        decided=Meant(values_of(accepted)),
        turned_out=Meant(values_of(positive)),
        trust_rejected_outcomes=draw(st.sampled_from([False, False, True])),
    )
    return log, columns


def one_kind(values):
    """Return values as a column of one type can hold them."""
    kinds = {type(value) for value in values if value is not None}
    if str in kinds:
        return [None if value is None else str(value) for value in values]
    return [None if v is None else float(v) for v in values] if float in kinds else values


def found(log, columns, fetch_rows):
    try:
        opened = reading.open_log(log, columns, Limits(in_memory=fetch_rows))
        if isinstance(opened, LazyLog):
            names, sums = opened.sums(0.01)
        else:
            names = opened.names
            sums = add_up(opened.codes, len(names), opened.person, 0.01)
            pending = sums.pending.sum()
            assert pending == opened.pending
    except InputError as error:
        named = re.match(r"\w+ '\w+'", str(error))
        return named[0] if named else str(error)[:30]
    counts = np.stack([sums.people, sums.accepted, sums.positive, sums.pending])
    return {say(name): counts[:, i].sum(axis=-1).tolist() for i, name in enumerate(names)}


@settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))
@given(given_log=logs())
def test_the_same_rows_are_the_same_log(tmp_path_factory, given_log):
    log, columns = given_log
    folder = tmp_path_factory.mktemp("same")
    frame = pd.DataFrame({name: pd.Series(values, dtype=object) for name, values in log.items()})
    typed = pl.DataFrame({name: one_kind(values) for name, values in log.items()})
    typed.write_parquet(folder / "log.parquet")
    frame.to_csv(folder / "log.csv", index=False)
    known = found(log, columns, 10**6)
    for name, same in {
        "pandas": frame,
        "pandas, own types": pd.DataFrame(log),
        "polars": typed,
        "lazy polars": typed.lazy(),
        "duckdb": duckdb.sql("from typed"),
        "parquet": folder / "log.parquet",
        "csv": folder / "log.csv",
    }.items():
        for fetch_rows in (10**6, 1):
            assert found(same, columns, fetch_rows) == known, (name, fetch_rows)
