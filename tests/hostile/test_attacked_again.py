"""What the second attack found: each was read wrongly, destroyed something or was told badly."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import sellf
from sellf import compiling
from sellf.cli import main
from sellf.errors import InputError
from sellf.logs.limits import Limits

HEADER = "race,approved,repaid,p"
AUDIT = ["--group", "race", "--decision", "approved", "--outcome", "repaid", "--propensity", "p"]
ROOT = Path(sellf.__file__).parents[1]


def rows(number=400):
    rng = np.random.default_rng(0)
    accepted = rng.integers(0, 2, number)
    return [f"{'ab'[i % 2]},{d},{i % 3 % 2 if d else ''},0.5" for i, d in enumerate(accepted)]


@pytest.fixture
def log(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text("\n".join([HEADER, *rows()]) + "\n")
    return path


def command(folder, *words, **options):
    return subprocess.run(
        [sys.executable, "-m", "sellf", *map(str, words)],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        text=True,
        check=False,
        **options,
    )


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda t: t.replace("b,", '"b,', 1), "a double quote in line 3 is not closed"),
        (lambda t: t.replace("b,", "b,7,", 1), "line 3 has 5 values and the header 4"),
        (lambda t: t.replace("b,", "b;", 1), "line 3 has 3 values and the header 4"),
        (lambda t: t.replace("\n", "\r\n", 50), "it mixes different line endings"),
        (lambda t: t + "x" * 2_100_000 + "\n", "line 402 has more than 2,000,000 characters"),
    ],
    ids=["quote", "more", "fewer", "line ends", "long line"],
)
def test_an_odd_csv_file_is_told_by_its_line(log, change, sentence, capsys):
    log.write_text(change(log.read_text()), newline="")
    assert main(["audit", str(log), *AUDIT]) == 2
    told = capsys.readouterr().err
    assert sentence in told
    assert len(told) < 250


def test_a_line_far_down_is_told_without_being_shown(tmp_path, capsys):
    body = "\n".join(rows(1000) * 201)
    for value, sentence in (("a,1,1,oops", '"oops"'), ('"a,1,1,0.5', "unterminated quote")):
        (tmp_path / "log.csv").write_text(f"{HEADER}\n{body}\n{value}\na,1,1,0.5\n")
        assert main(["audit", str(tmp_path / "log.csv"), *AUDIT]) == 2
        told = capsys.readouterr().err
        assert "line 201002: " in told
        assert sentence in told
        assert "Original Line" not in told


def test_a_file_without_line_ends_is_not_read_whole(tmp_path, capsys):
    """Gigabytes of nothing, as a hole in a file is read."""
    with (tmp_path / "log.csv").open("wb") as file:
        file.truncate(2**33)
    tracking = "import resource; resource.setrlimit(resource.RLIMIT_AS, (3 * 2**30, 3 * 2**30)); "
    typed = ["audit", str(tmp_path / "log.csv"), *AUDIT]
    done = subprocess.run(
        [sys.executable, "-c", f"{tracking}import sys; from sellf.cli import main; "
         f"sys.exit(main({typed!r}))"],
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )  # fmt: skip
    assert done.returncode == 2
    assert done.stderr.startswith("sellf: log.csv")


@pytest.mark.parametrize("where", ["file", "engine", "memory"])
def test_times_that_differ_by_nanoseconds_are_not_one_group(tmp_path, where):
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    for step in (1, 1000):
        group = pa.array([1_600_000_000_000_000_000 + k % 2 * step for k in range(400)])
        accepted = [k % 3 % 2 for k in range(400)]
        table = pa.table({"g": group.cast(pa.timestamp("ns")), "d": accepted})
        pq.write_table(table, tmp_path / "log.parquet")
        log = table if where == "memory" else tmp_path / "log.parquet"
        limits = Limits(in_memory=0) if where == "engine" else Limits()
        asked = {"group": "g", "decision": "d", "notion": "demographic", "limits": limits}
        if step == 1:
            with pytest.raises(InputError, match="fractions of a microsecond"):
                sellf.audit(log, **asked)
        else:
            assert len(sellf.audit(log, **asked).by_group) == 2


def test_a_page_on_standard_output_is_alone_there(log, tmp_path):
    typed = ["audit", log, *AUDIT, "--html"]
    with (tmp_path / "all.html").open("ab") as file:
        file.write(b"<!-- kept -->\n")
        file.flush()
        done = command(tmp_path, *typed, "/dev/stdout", stdout=file, stderr=subprocess.PIPE)
    assert done.returncode == 0
    assert "opportunity disparity" in done.stderr
    page = (tmp_path / "all.html").read_text()
    assert page.startswith("<!-- kept -->\n<!doctype html>")
    assert page.rstrip().endswith("</html>")
    done = command(tmp_path, *typed, "/dev/stdout", "--json", capture_output=True)
    assert done.returncode == 2
    with (tmp_path / "page.html").open("wb") as file:
        done = command(tmp_path, *typed, "page.html", stdout=file, stderr=subprocess.PIPE)
    assert done.returncode == 2
    assert "own output goes" in done.stderr


def test_programs_that_were_cut_off_are_not_kept(tmp_path):
    sizes = {"a-cache": 8192, "b-cache": 0, "c-cache": 8191, "notes": 8192}
    for name, size in sizes.items():
        (tmp_path / name).write_bytes(bytes(size))
    compiling.sweep_cache(str(tmp_path))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["c-cache", "notes"]
    compiling.sweep_cache(str(tmp_path / "nowhere"))


@pytest.mark.parametrize("value", ["zeroblob(900000000)", "hex(zeroblob(900000)) || n"])
def test_a_small_database_does_not_take_all_memory(tmp_path, capsys, value, monkeypatch):
    import sqlite3

    from sellf.logs import databases

    monkeypatch.setattr(databases, "LARGEST", 20_000_000)
    with sqlite3.connect(tmp_path / "log.sqlite") as made:
        made.execute(
            "create view log as with recursive r(n) as (select 1 union all select n + 1 from r "
            f"limit 1000) select {value} as race, n % 2 as approved from r"
        )
    made.close()
    typed = ["--group", "race", "--decision", "approved", "--notion", "demographic"]
    assert main(["audit", str(tmp_path / "log.sqlite"), *typed]) == 2
    assert "log.sqlite" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("format = 1\nseed = " + "9" * 5000, "4300 digits"),
        ("a = " + "[" * 50_000, "nested too deeply"),
        (".".join("a" * 100_000) + " = 1", "too many parts"),
    ],
    ids=["digits", "nested", "parts"],
)
def test_a_configuration_that_nobody_would_write_is_refused(tmp_path, text, sentence, capsys):
    (tmp_path / "audit.toml").write_text(text)
    assert main(["audit", str(tmp_path / "audit.toml")]) == 2
    assert sentence in capsys.readouterr().err


def test_hardly_any_chance_to_miss_is_not_an_error(log, capsys):
    assert main(["audit", str(log), *AUDIT, "--delta", "1e-300", "--seed", "1"]) == 0
    assert "UNDETERMINED" in capsys.readouterr().out


def test_names_that_lead_nowhere(log, tmp_path, capsys):
    (tmp_path / "page.html").symlink_to("nowhere/page.html")
    for name, sentence in (("page.html", "folder does not exist"), ("a\0b", "not a valid name")):
        assert main(["audit", str(log), *AUDIT, "--html", str(tmp_path / name)]) == 2
        assert sentence in capsys.readouterr().err


def test_a_frontier_is_not_computed_for_a_picture_that_cannot_be_drawn(tmp_path, monkeypatch):
    monkeypatch.setattr("sellf.cli.frontier.frontier", lambda *_, **__: pytest.fail("it was"))
    assert main(["frontier", "lending", "--plot", str(tmp_path / "nowhere" / "x.png")]) == 2


@pytest.mark.parametrize("digits", [25, 280, 4_000, 6_000])
def test_long_numbers_in_a_condition_are_compared_with_or_refused(tmp_path, capsys, digits):
    log = tmp_path / "log.csv"
    log.write_text("race,approved,p\n" + "a,1,0.5\nb,0,0.5\n" * 20)
    typed = ["audit", str(log), "--group", "race", "--decision", "approved", "--seed", "1"]
    code = main([*typed, "--notion", "demographic", "--where", f"p < {'9' * digits}"])
    if digits <= 300:
        assert code == 0
    else:
        assert code == 2
        assert f"a number of {digits:,} digits" in capsys.readouterr().err
