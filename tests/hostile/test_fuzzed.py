"""What fuzzing found in the kinds of files that came last: each was a traceback, or worse."""

import contextlib
import random
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

import sellf
from sellf import files
from sellf.cli import main
from sellf.errors import InputError
from tests.hostile import log_mutators, table_kinds

LOG = {"group": "race", "decision": "approved", "notion": "demographic"}


def log(**columns):
    return {"race": ["a", "b"] * 50, "approved": [1, 1, 0, 0] * 25} | columns


def test_a_name_that_goes_on_for_pages_is_no_group():
    with pytest.raises(InputError, match=r"a value has 1,001 characters, and at most 1,000"):
        sellf.audit(log(race=["x" * 1001, "b"] * 50), **LOG)
    assert "x" * 1000 in sellf.audit(log(race=["x" * 1000, "b"] * 50), **LOG).by_group


def test_a_database_that_was_replaced_is_read_as_it_is_now(tmp_path):
    """DuckDB hands a process what a file held when it was first connected to."""
    duckdb = pytest.importorskip("duckdb")
    path = tmp_path / "log.duckdb"
    still_open = []
    for people in (100, 300):
        other = tmp_path / f"{people}.duckdb"
        with duckdb.connect(str(other)) as made:
            made.execute(
                "create table log as select case when i % 2 = 0 then 'a' else 'b' end race, "
                f"i // 2 % 2 approved from range({people}) t(i)"
            )
        other.replace(path)
        still_open.append(duckdb.connect(str(path), read_only=True))
        found = sellf.audit(str(path), **LOG)
        assert sum(group.people for group in found.by_group.values()) == people


def test_a_database_in_which_nobody_is_accepted_is_told_so(tmp_path):
    duckdb = pytest.importorskip("duckdb")
    with duckdb.connect(str(tmp_path / "log.duckdb")) as made:
        made.execute("create table log (race varchar, approved varchar, id varchar)")
        made.execute("insert into log select 'ab'[1 + i % 2], 'no', i from range(60) t(i)")
    options = LOG | {"accepted_value": "yes", "rejected_value": "no"}
    with pytest.raises(InputError, match="approved"):
        sellf.audit(str(tmp_path / "log.duckdb"), **options)


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads a process's peak there")
def test_long_names_in_a_small_database_are_refused_before_they_are_brought_here(tmp_path):
    """The engine unpacks 400 MB of names; bringing them here took as much again."""
    duckdb = pytest.importorskip("duckdb")
    path = tmp_path / "log.duckdb"
    with duckdb.connect(str(path)) as made:
        made.execute("create table log as select i % 2 approved, i race from range(400) t(i)")
        made.execute("alter table log alter race type varchar")
        made.execute("update log set race = repeat('x', 1000000)")
    source = (
        "import duckdb, narwhals, pyarrow, sellf, sellf.errors\n"
        "from tests.hostile.watching import peak\n"
        "before = peak()\n"
        "try:\n"
        f"    sellf.audit({str(path)!r}, **{LOG!r})\n"
        "except sellf.errors.InputError as error:\n"
        "    print(error)\n"
        "print(int(peak() - before))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", source], capture_output=True, text=True, timeout=120
    )
    told, grown = done.stdout.strip().splitlines()
    assert "a value has 1,000,000 characters, and at most 100,000" in told
    assert int(grown) < 600e6


@pytest.fixture
def policies(tmp_path):
    return table_kinds.good_policy(tmp_path)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("feature", lambda a: a[:-1]),
        ("left", lambda a: a.astype("float64")),
        ("feature", lambda a: a + 50),
        ("value", lambda a: a[None]),
        ("roots", lambda a: a[None]),
        ("feature", lambda a: a[0]),
    ],
    ids=["shorter", "no numbers of nodes", "unknown features", "another shape", "roots", "scalar"],
)
def test_trees_that_do_not_fit_are_refused(policies, name, change):
    path = policies / "boosting" / "model.safetensors"
    arrays = files.read_tensors(path)
    path.write_bytes(files.tensors_to_bytes(arrays | {name: change(arrays[name])}))
    with pytest.raises(InputError, match="damaged"):
        sellf.load_policy(policies / "boosting")


@pytest.mark.parametrize("change", [{"scale": 0.0}, {"centre": 1e400}, {"edges": [None]}], ids=str)
def test_features_without_a_scale_are_refused(policies, change):
    path = policies / "boosting" / "policy.json"
    content = files.parse_json(path.read_bytes())
    content["features"][0] |= change
    content.pop("sha256")
    path.write_bytes(files.sealed_json(content))
    with pytest.raises(InputError, match=r"damaged|too large|not a number"):
        sellf.load_policy(policies / "boosting")


@pytest.mark.parametrize("kind", ["scorecard", "boosting"])
@pytest.mark.parametrize("name", ["threshold", "band", "follow", "explore"])
@pytest.mark.parametrize("value", [10**400, 1e300, -(10**400)], ids=["huge", "large", "negative"])
def test_numbers_of_a_policy_beyond_reason_are_refused(policies, kind, name, value):
    path = policies / kind / "policy.json"
    content = files.parse_json(path.read_bytes()) | {name: value}
    content.pop("sha256")
    path.write_bytes(files.sealed_json(content))
    with pytest.raises(InputError, match=r"damaged|too large|not a number"):
        str(sellf.load_policy(policies / kind))


@pytest.mark.parametrize("notion", ["3.5", "[[1]]", "1979-05-27T07:32:00", "true", "{}"])
def test_a_configuration_whose_notion_is_no_name_is_refused(tmp_path, capsys, notion):
    chance = random.Random(0)
    written = log_mutators.written(chance, log_mutators.good(chance), ",")
    (tmp_path / "log.csv").write_bytes(written)
    lines = [line for line in table_kinds.CONFIG.splitlines() if not line.startswith("notion")]
    text = "\n".join([*lines, f"notion = {notion}", ""])
    (tmp_path / "audit.toml").write_text(text)
    assert main(["audit", str(tmp_path / "audit.toml")]) == 2
    error = capsys.readouterr().err
    assert error.startswith("sellf: ")
    assert "notion" in error


def test_a_configuration_with_a_list_for_a_column_is_refused(tmp_path, capsys):
    chance = random.Random(0)
    written = log_mutators.written(chance, log_mutators.good(chance), ",")
    (tmp_path / "log.csv").write_bytes(written)
    text = table_kinds.CONFIG.replace('decision = "approved"', "decision = [[]]")
    (tmp_path / "audit.toml").write_text(text + 'panel = true\nwithin = ["score"]\n')
    assert main(["audit", str(tmp_path / "audit.toml")]) == 2
    assert "decision is [[]]: give a column's name" in capsys.readouterr().err


@pytest.mark.parametrize("line", ["score_range = [0, 1%s]", "weight = 1%s", "groups = [1%s]"])
def test_whole_numbers_beyond_64_bits_are_refused(tmp_path, capsys, line):
    (tmp_path / "audit.toml").write_text(f"{table_kinds.CONFIG}\n{line % ('0' * 400)}\n")
    assert main(["audit", str(tmp_path / "audit.toml")]) == 2
    assert "a whole number has more than 64 bits" in capsys.readouterr().err


@pytest.mark.parametrize("groups", [3.5, 7, True])
def test_groups_that_are_no_names_are_refused_in_a_sentence(groups):
    log = {"race": ["a", "b"] * 4, "approved": [1, 0] * 4}
    with pytest.raises(InputError, match=str(groups)):
        sellf.audit(log, notion="demographic", group="race", decision="approved", groups=groups)


def test_a_frontier_that_does_not_rise_is_damaged(tmp_path):
    from sellf.studies import frontiers
    from sellf.studies.store import open_store
    from sellf.training.spec import WorldSpec

    store, world = open_store(tmp_path / "store"), WorldSpec("lending", {})
    for disparity in ((0.3, 0.1), (0.1, 1e31)):
        frontiers.keep(store, world, "opportunity", frontiers.Curve(disparity, (1.0, 2.0)))
        with pytest.raises(InputError, match="is damaged"):
            frontiers.stored(store, world, "opportunity")


def test_a_saved_audit_whose_files_are_none_is_refused(tmp_path, capsys):
    assert main(["audit", "--example", "--json", "--seed", "1"]) == 0
    content = files.parse_json(capsys.readouterr().out.encode())
    content["origin"]["files"] = 7
    content.pop("sha256")
    (tmp_path / "audit.json").write_bytes(files.sealed_json(content))
    assert main(["report", str(tmp_path / "audit.json"), "-o", str(tmp_path / "a.html")]) == 2
    assert "does not hold an audit (TypeError: files is not a list)" in capsys.readouterr().err


def test_days_that_no_calendar_has_are_refused_by_an_engine(tmp_path):
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    from sellf.logs.limits import Limits

    days = pa.array([2**31 - 1, 5] * 50, pa.int32()).cast(pa.date32())
    table = pa.table({"race": days, "approved": [1, 1, 0, 0] * 25})
    parquet.write_table(table, tmp_path / "log.parquet")
    with pytest.raises(InputError, match="dates that are out of range"):
        sellf.audit(str(tmp_path / "log.parquet"), limits=Limits(in_memory=0), **LOG)


@pytest.mark.parametrize("seconds", [1e308, -1.0, 10**400])
def test_a_run_that_took_for_ever_is_not_believed(tmp_path, seconds):
    from sellf.studies.store import open_store

    store = open_store(tmp_path / "store")
    run = store.path("a-run")
    run.mkdir(parents=True)
    (run / "config.json").write_text(f'{{"seconds": {seconds}}}')
    assert store.seconds("a-run") is None


@pytest.mark.parametrize("nested", [{"a": "x"}, ["x", "y"]], ids=["record", "list"])
def test_columns_of_records_and_lists_that_nobody_named_are_left_alone(nested):
    pa = pytest.importorskip("pyarrow")
    log = {"race": ["a", "b"] * 10, "approved": [1, 0] * 10, "other": [nested] * 20}
    found = sellf.audit(
        pa.table(log), notion="demographic", group="race", decision="approved", seed=1
    )
    assert found.verdict in ("fair", "unfair", "undetermined")


def test_the_digest_of_very_small_numbers_is_one():
    log = {
        "race": ["a", "b"] * 40,
        "approved": [1, 0, 1, 1] * 20,
        "p": [1e-320, 0.5, 0.9, 0.7] * 20,
    }
    log["repaid"] = [1 if accepted else None for accepted in log["approved"]]
    columns = {"group": "race", "decision": "approved", "outcome": "repaid", "score": "p"}
    one, two = (sellf.audit(log, seed=1, **columns) for _ in range(2))
    assert one.difference == two.difference


def test_a_first_line_with_a_value_beyond_all_measure_is_refused(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text(f"race,approved,{'x' * 140_000}\n" + "a,1,2\nb,0,2\n" * 40)
    with pytest.raises(InputError, match="first line that cannot be read: field larger than"):
        sellf.audit(str(path), **LOG)


def test_what_sqlite_says_of_a_damaged_schema_is_cut_short(tmp_path):
    path = tmp_path / "log.sqlite"
    with contextlib.closing(sqlite3.connect(path)) as made:
        made.execute(f'create table log (race text, approved int, "{"x" * 50_000}" text)')
        made.commit()
    path.write_bytes(path.read_bytes().replace(b'x" text', b"x! text"))
    with pytest.raises(InputError, match="cannot be read: malformed database schema") as raised:
        sellf.audit(str(path), **LOG)
    assert len(str(raised.value)) < 1000
