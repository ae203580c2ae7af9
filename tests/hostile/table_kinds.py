"""Files that came with reading any log: workbooks, databases, configurations, policies, frontiers.

As for other logs, what is read has to make sense; and a workbook or a database says of the same
cells what they say in memory.
"""

import io
import json
import sqlite3
import zipfile
from pathlib import Path
from typing import Any

from tests.hostile import kinds, log_kinds, mutators
from tests.hostile import log_mutators as logs
from tests.hostile.kinds import Chance, Kind, typed

LOG = log_kinds.LABELLED | {"propensity": "p", "notion": "opportunity"}
ODD_PARTS = (
    b"", b"<a>", b'<?xml version="1.0"?><!DOCTYPE a [<!ENTITY e SYSTEM "file:///etc/passwd">]><a>'
    b"&e;</a>", b"<a>" * 5000, b"\x00" * 100,
)  # fmt: skip
"""What a part of a workbook may be that is none."""
BOMB = (
    b'<?xml version="1.0"?><!DOCTYPE a [<!ENTITY a "'
    + b"x" * 1000
    + b'">'
    + b"".join(b'<!ENTITY %c "%b">' % (98 + i, b"&%c;" % (97 + i) * 50) for i in range(8))
    + b"]><a>&i;</a>"
)
"""A text that becomes longer than any memory when its names are replaced."""
SQLITE_ODD = (
    'create view "odd" as select * from log',
    "create table more (a)",
    "create view rows as with recursive n(i) as (select 1 union all select i + 1 from n) "
    "select 'a' race, 1 approved, 1 repaid, 0.5 p from n",
    "drop table log",
    "update log set p = zeroblob(1000)",
    "update log set race = x'ff00' where rowid = 1",
    "update log set p = 9e999",
    "update log set approved = 9223372036854775807",
    'alter table log rename column "p" to "p "',
    "delete from log",
    "insert into log select * from log",
)
DUCKDB_ODD = (
    "create view odd as select * from log",
    "drop table log; create view log as select * from read_csv('{outside}/canary.csv')",
    "drop table log; create view log as select 'a' race, 1 approved, 1 repaid, 0.5 p "
    "from range(2100000)",
    "update log set race = repeat('x', 1000000)",
    "alter table log alter p type double; update log set p = 'nan'",
    "alter table log alter race type blob",
    "drop table log; create table log as select [1] race, {{'a': 1}} approved, 1 repaid, 0.5 p",
    "delete from log",
    "drop table log; create macro log() as 1",
)
CONFIG = """format = 1

[log]
file = "log.csv"
where = "race in ('a', 'b')"
groups = ["a", "b"]
missing_value = [".", "NA"]
date_format = "YYYY-MM-DD"
separator = ","
encoding = "utf-8"

[columns]
group = "race"
decision = "approved"
outcome = "repaid"
propensity = "p"
score = "score"
score_range = "0:1"
accepted_value = "1"
time = "day"

[audit]
omega = 0.05
notion = "opportunity"
seed = 1
by = "month"
"""
PATHS = ("log.csv", "../outside/log.csv", "/dev/zero", "/dev/stdin", "*.csv", "log[1].csv", ".",
         "nowhere.csv", "audit.toml", "postgresql://127.0.0.1:1/x")  # fmt: skip


def _log(chance: Chance, purposely: float = 0.7) -> logs.Log:
    log = logs.good(chance)
    return logs.cells_on_purpose(chance, log) if chance.random() < purposely else log


def _value(chance: Chance, cell: str) -> Any:
    """Return a cell as a spreadsheet or a database would hold it."""
    if cell == "":
        return None
    try:
        number = float(cell)
    except ValueError:
        return cell
    if chance.random() < 0.1 or number != number or abs(number) > 1e15:
        return cell
    return int(number) if number.is_integer() and "." not in cell else number


def _book(chance: Chance, log: logs.Log) -> bytes:
    import openpyxl
    from openpyxl.cell.cell import ILLEGAL_CHARACTERS_RE

    book = openpyxl.Workbook(write_only=True)
    sheet = book.create_sheet("log")
    for row in (log.header, *log.rows):
        values = [_value(chance, cell) for cell in row]
        sheet.append([ILLEGAL_CHARACTERS_RE.sub("?", v) if isinstance(v, str) else v
                      for v in values])  # fmt: skip
    out = io.BytesIO()
    book.save(out)
    return out.getvalue()


def good_book(folder: Path) -> Path:
    log_kinds.put(folder, "log.xlsx", _book(Chance(0), logs.good(Chance(0))), LOG)
    return folder / "log"


def worse_book(chance: Chance, folder: Path) -> bool:
    """Write another workbook: other cells, other parts, or damaged."""
    content, act = _book(chance, _log(chance)), chance.random()
    if act < 0.3:
        content = mutators.damage(chance, content)
    elif act < 0.6:
        content = _other_part(chance, content)
    log_kinds.put(folder.parent, "log.xlsx", content, chance.choice((*log_kinds.OPTIONS, LOG)))
    return True


def _other_part(chance: Chance, content: bytes) -> bytes:
    """Return a workbook of which one part is damaged, another text, missing, or there twice."""
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as old, zipfile.ZipFile(out, "w") as new:
        names = old.namelist()
        at, act = chance.choice(names), chance.random()
        for name in names:
            inner = old.read(name)
            if name == at:
                if act < 0.1:
                    continue
                odd = chance.choice((*ODD_PARTS, BOMB))
                inner = odd if act < 0.4 else mutators.damage(chance, inner)
                name = "../../outside/planted.py" if act > 0.95 else name
            new.writestr(name, inner, zipfile.ZIP_DEFLATED)
    return out.getvalue()


def good_sqlite(folder: Path) -> Path:
    log_kinds.put(folder, "log.sqlite", _sqlite(Chance(0), logs.good(Chance(0))), LOG)
    return folder / "log"


def _sqlite(chance: Chance, log: logs.Log, *more: str) -> bytes:
    connection = sqlite3.connect(":memory:")
    connection.execute("create table empty (a)")  # so that there is a database in any case
    connection.execute("drop table empty")
    header = [name or f"column {i}" for i, name in enumerate(dict.fromkeys(log.header))]
    names = ", ".join('"{}"'.format(name.replace('"', '""').replace("\0", "")) for name in header)
    marks = ", ".join("?" * len(header))
    try:
        connection.execute(f"create table log ({names})")
        rows = [[_value(chance, cell) for cell in row[: len(header)]] for row in log.rows]
        connection.executemany(f"insert into log values ({marks})", rows)
        for statement in more:
            connection.execute(statement)
    except sqlite3.Error:
        pass  # a name twice, or what was changed is not there: the rest of it will do
    connection.commit()
    return connection.serialize()


def worse_sqlite(chance: Chance, folder: Path) -> bool:
    """Write another database of SQLite: other rows, odd tables and views, or damaged."""
    act = chance.random()
    odd = [chance.choice(SQLITE_ODD)] if act < 0.4 else []
    content = _sqlite(chance, _log(chance), *odd)
    if act > 0.6:
        content = mutators.damage(chance, content)
    log_kinds.put(folder.parent, "log.sqlite", content, chance.choice((*log_kinds.OPTIONS, LOG)))
    return True


def good_duckdb(folder: Path) -> Path:
    log_kinds.put(folder, "log.duckdb", _duckdb(folder, logs.good(Chance(0))), LOG)
    return folder / "log"


def _duckdb(folder: Path, log: logs.Log, *more: str) -> bytes:
    import duckdb
    import pyarrow as pa

    path = folder / "made.duckdb"
    path.unlink(missing_ok=True)
    names = [name or f"column {i}" for i, name in enumerate(log.header)]
    columns = [pa.array([row[at] or None for row in log.rows]) for at in range(len(names))]
    with duckdb.connect(str(path), config={"threads": 1}) as connection:
        made = pa.table(columns, names=names)
        try:
            connection.register("made", made)
            connection.execute("create table log as select * from made")
            for statement in more:
                outside = folder.parent / "outside"
                connection.execute(statement.format(outside=outside))
        except duckdb.Error:
            pass
    content = path.read_bytes()
    path.unlink()
    return content


def worse_duckdb(chance: Chance, folder: Path) -> bool:
    """Write another database of DuckDB: other rows, odd tables and views, or damaged."""
    act = chance.random()
    odd = [chance.choice(DUCKDB_ODD)] if act < 0.4 else []
    content = _duckdb(folder.parent, _log(chance), *odd)
    if act > 0.6:
        content = mutators.damage(chance, content)
    log_kinds.put(folder.parent, "log.duckdb", content, chance.choice((*log_kinds.OPTIONS, LOG)))
    return True


def good_config(folder: Path) -> Path:
    chance = Chance(0)
    (folder / "config").mkdir()
    (folder / "config" / "audit.toml").write_text(CONFIG)
    (folder / "config" / "log.csv").write_bytes(logs.written(chance, logs.good(chance, 400), ","))
    return folder / "config"


def worse_config(chance: Chance, folder: Path) -> bool:
    """Write something else into a configuration."""
    path = folder / "audit.toml"
    act, content = chance.random(), path.read_bytes()
    if act < 0.3:
        content = mutators.damage(chance, content)
    elif act < 0.4:
        other = json.dumps(chance.choice(PATHS)).encode()
        content = content.replace(b'"log.csv"', other)
    else:
        for _ in range(chance.choice((1, 1, 2, 4))):
            content = mutators.toml_on_purpose(chance, content)
    path.write_bytes(content)
    return True


@log_kinds.one_connection()
def use_config(folder: Path) -> Any:
    """Audit as a configuration says."""
    from sellf.cli import audit
    from sellf.cli.audit_flags import (
        ColumnFlags,
        JudgeFlags,
        MeasureFlags,
        OutputFlags,
        ReadingFlags,
    )

    path = str(folder / "config" / "audit.toml")
    flags = ColumnFlags(), ReadingFlags(), JudgeFlags(), MeasureFlags(), OutputFlags(json=True)
    content = json.loads(typed(lambda: audit.run(path, *flags)))
    if not isinstance(content, dict):
        raise AssertionError("an audit that is no object")
    return "whatever it says"


def good_policy(folder: Path) -> Path:
    import numpy as np

    from sellf.offline.encoding import learn_encoding
    from sellf.offline.models import fit_linear, fit_trees
    from sellf.offline.policy import LearnedPolicy

    people = _people()
    target = (np.asarray(people["income"]) > 50).astype(float)
    (folder / "policies").mkdir()
    for kind in ("scorecard", "boosting"):
        encoding = learn_encoding(people, bins=kind == "scorecard")
        matrix = encoding.encode(people)
        model = (fit_linear if kind == "scorecard" else fit_trees)(matrix, target)
        policy = LearnedPolicy(
            kind, encoding, model, 0.1, follow=0.9, explore=0.02, card="a card", facts={"n": 60}
        )
        policy.save(folder / "policies" / kind)
    return folder / "policies"


def _people() -> dict[str, Any]:
    import numpy as np

    chance = np.random.default_rng(0)
    words = np.array(["rent", "own", "other"])[chance.integers(0, 3, 60)]
    return {"income": chance.uniform(0, 100, 60), "home": words}


def use_policy(folder: Path) -> Any:
    """Load both policies and decide."""
    import numpy as np

    import sellf

    found = []
    for path in sorted((folder / "policies").iterdir()):
        policy = sellf.load_policy(path)
        chances = policy.probability(_people())
        if not (np.isfinite(chances).all() and (chances >= 0).all() and (chances <= 1).all()):
            raise AssertionError(f"chances that are none: {chances[:5]}")
        found.append((chances.tobytes(), policy.facts, policy.kind, str(policy)))
    return found


def worse_policy(chance: Chance, folder: Path) -> bool:
    """Make a file of one of two policies worse."""
    return kinds.worse(chance, folder, ("policy.json", "model.safetensors", "card.md"))


def good_frontier(folder: Path) -> Path:
    from sellf.studies import frontiers
    from sellf.studies.store import open_store

    store = open_store(folder / "store")
    curve = frontiers.Curve((0.01, 0.05, 0.3), (1500.0, 1570.0, 1660.0))
    frontiers.keep(store, *_world(), curve)
    return folder / "store" / frontiers.FOLDER


def _world() -> tuple[Any, str]:
    from sellf.training.spec import WorldSpec

    return WorldSpec("lending", {}), "opportunity"


def use_frontier(folder: Path) -> Any:
    """Read a frontier that was kept in a store."""
    from sellf.studies import frontiers
    from sellf.studies.store import Store

    curve = frontiers.stored(Store(folder / "store"), *_world())
    if curve is None:
        return None
    found = [curve.reward_at(x) for x in (0.0, 0.02, 0.1, 1.0)]
    if any(value is not None and not abs(value) < 1e300 for value in found):
        raise AssertionError(f"a frontier without figures: {found}")
    return found


TABLES = {
    "workbook": Kind(good_book, log_kinds.use_log, worse_book, 3, replaces=True),
    "database (SQLite)": Kind(good_sqlite, log_kinds.use_log, worse_sqlite, 4, replaces=True),
    "database (DuckDB)": Kind(good_duckdb, log_kinds.use_log, worse_duckdb, 1, replaces=True),
    "configuration": Kind(good_config, use_config, worse_config, 4),
    "policy": Kind(good_policy, use_policy, worse_policy, 8),
    "frontier": Kind(good_frontier, use_frontier, kinds.worse, 4),
}
