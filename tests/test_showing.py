"""What commands show while they work."""

import io
import time

import pytest

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
