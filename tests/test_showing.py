"""What commands show while they work."""

import io
import time

import pytest

from sellf import durations
from sellf.cli import showing


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize(("stream", "shown"), [(Terminal, True), (io.StringIO, False)])
def test_work_that_goes_on_is_shown_in_a_terminal_only(monkeypatch, stream, shown):
    monkeypatch.setattr(showing, "PATIENCE", 0.01)
    monkeypatch.setattr("sys.stderr", stream())
    monkeypatch.setenv("TERM", "xterm")
    with showing.waiting("auditing [/b]"):
        time.sleep(0.4)
    import sys

    assert ("auditing [/b]" in sys.stderr.getvalue()) is shown


def test_work_that_is_soon_done_is_not_shown(monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    with showing.waiting("auditing"):
        pass
    assert "auditing" not in terminal.getvalue()


def test_a_name_with_brackets_is_shown_as_it_is(monkeypatch):
    monkeypatch.setattr(showing, "PATIENCE", 0.0)
    monkeypatch.setenv("TERM", "xterm")
    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    with showing.bar("cut-offs of [/b]") as progress:
        time.sleep(0.01)
        progress(1, 2)
        time.sleep(0.2)
    assert "cut-offs of [/b]" in terminal.getvalue()


def test_databases_draw_no_bars_amid_what_is_printed(tmp_path):
    duckdb = pytest.importorskip("duckdb")
    from sellf.logs.databases import open_duckdb

    path = tmp_path / "log.duckdb"
    duckdb.connect(str(path)).close()
    asked = "select current_setting('enable_progress_bar') as bar"
    assert open_duckdb(path, None, asked).fetchall() == [(False,)]


def test_work_that_was_done_before_is_told_how_long_it_took(monkeypatch, tmp_path):
    monkeypatch.setenv("SELLF_CACHE", str(tmp_path))
    monkeypatch.setattr(showing, "PATIENCE", 0.01)
    monkeypatch.setenv("TERM", "xterm")
    said = []
    for _ in range(2):
        terminal = Terminal()
        monkeypatch.setattr("sys.stderr", terminal)
        with showing.waiting("auditing", "audit .csv", size=1e6):
            time.sleep(0.4)
        said.append("about" in terminal.getvalue())
    assert said == [False, True]
    # Twice the work takes twice as long.
    assert 0.7 < (durations.expected("audit .csv", 2e6) or 0) < 60


@pytest.mark.parametrize("content", ["", "[" * 100_000, "[1]", '{"a": "x"}', '{"a": -1}', "\x00"])
def test_a_damaged_memory_of_durations_costs_nothing_but_the_estimate(
    monkeypatch, tmp_path, content
):
    monkeypatch.setenv("SELLF_CACHE", str(tmp_path))
    (tmp_path / durations.NAME).write_text(content)
    assert durations.expected("a") is None
    durations.note("a", 3.0, size=2.0)
    assert durations.expected("a") == 1.5


def test_nothing_is_remembered_where_no_cache_is_wanted(monkeypatch, tmp_path):
    monkeypatch.setenv("SELLF_CACHE", "")
    monkeypatch.chdir(tmp_path)
    durations.note("a", 3.0)
    assert list(tmp_path.iterdir()) == []
