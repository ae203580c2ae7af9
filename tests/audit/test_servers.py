"""A log on a real PostgreSQL server; skipped where there is no server or no extension of DuckDB.

    pip install pgserver duckdb-extensions duckdb-extension-postgres-scanner

The last two are for one version of DuckDB each.
"""

import tempfile
import warnings
from pathlib import Path

import numpy as np
import pytest

import sellf
from sellf.errors import InputError

pytestmark = pytest.mark.slow
duckdb = pytest.importorskip("duckdb")
ASKED = {"group": "race", "decision": "approved", "accepted_value": "yes", "seed": 1}


@pytest.fixture(scope="module")
def server():
    pgserver = pytest.importorskip("pgserver")
    extensions = pytest.importorskip("duckdb_extensions")
    try:
        extensions.import_extension("postgres_scanner")
    except Exception as error:
        pytest.skip(f"no extension for DuckDB {duckdb.__version__}: {error}")
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)  # a server that root starts is run by somebody else
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            started = pgserver.get_server(Path(folder) / "data")
        yield started
        started.cleanup()


@pytest.fixture(scope="module")
def log(server):
    rng = np.random.default_rng(0)
    race = rng.choice(["Black", "White"], 600)
    approved = rng.random(600) < np.where(race == "Black", 0.4, 0.7)
    repaid = np.where(approved, rng.random(600) < 0.6, np.nan)
    branch = rng.choice(["n", "s"], 600)
    rows = ", ".join(
        f"('{g}', '{'yes' if a else 'no'}', {int(y) if a else 'null'}, '{b}')"
        for g, a, y, b in zip(race, approved, repaid, branch, strict=True)
    )
    server.psql("create table loans (race text, approved text, repaid int, branch text);")
    server.psql(f"insert into loans values {rows};")
    words = np.where(approved, "yes", "no")
    return {"race": race, "approved": words, "repaid": repaid, "branch": branch}


def test_a_table_and_a_query_are_audited_as_the_same_rows_in_memory(server, log):
    uri = server.get_uri()
    for notion, outcome in (("demographic", None), ("predictive-parity", "repaid")):
        how = {**ASKED, "notion": notion, "outcome": outcome}
        assert sellf.audit(uri, table="loans", **how).difference == pytest.approx(
            sellf.audit(log, **how).difference
        )
    north = {name: values[log["branch"] == "n"] for name, values in log.items()}
    query = "select race, approved from loans where branch = 'n'"
    asked = {**ASKED, "notion": "demographic"}
    assert sellf.audit(uri, query=query, **asked).difference == pytest.approx(
        sellf.audit(north, **asked).difference
    )


def test_a_server_is_only_read_from_and_its_password_is_not_shown(server, log):
    asked = {**ASKED, "notion": "demographic"}
    with pytest.raises(InputError, match="it has loans; type --table") as told:
        sellf.audit(server.get_uri().replace("postgres:@", "postgres:secret@"), table="x", **asked)
    assert "secret" not in str(told.value)
    with pytest.raises(InputError, match="give one SELECT"):
        sellf.audit(server.get_uri(), query="delete from loans", **asked)
    assert "600" in server.psql("select count(*) from loans;")
