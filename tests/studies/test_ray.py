"""Ray: a cluster that loses a node, one that is there already, and one that is not."""

import os
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

import sellf
from sellf.cli import main
from sellf.studies import spec
from sellf.studies.engines.base import Outcome
from sellf.studies.run import run
from sellf.studies.store import open_store
from tests.studies.test_killed import RESULTS, STUDY
from tests.studies.tiny import TEXT

# As the engine does for a cluster on 127.0.0.1; here Ray is imported before there is an engine.
os.environ["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"
ray = pytest.importorskip("ray")
pytestmark = pytest.mark.filterwarnings("ignore")

LONGER = STUDY.replace("seeds = 2", 'seeds = 4\nselect = "all"')
TOTAL = 12


@pytest.fixture
def listening():
    """An address where something listens that is not Ray and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        kept = []

        def accept():
            try:
                while True:
                    kept.append(server.accept())
            except OSError:
                return

        threading.Thread(target=accept, daemon=True).start()
        yield f"127.0.0.1:{server.getsockname()[1]}"
        server.shutdown(socket.SHUT_RDWR)
        for connection, _ in kept:
            connection.close()


@pytest.mark.parametrize("kind", ["closed", "silent", "nonsense"])
def test_an_address_that_is_no_cluster_is_answered_within_seconds(kind, listening, tmp_path, capfd):
    with socket.create_server(("127.0.0.1", 0)) as server:
        closed = f"127.0.0.1:{server.getsockname()[1]}"
    address = {"closed": closed, "silent": listening, "nonsense": "here"}[kind]
    (tmp_path / "tiny.toml").write_text(TEXT)
    begun = time.monotonic()
    typed = ["study", "run", str(tmp_path / "tiny.toml"), "--store", str(tmp_path / "store")]
    assert main([*typed, "--engine", "ray", "--address", address]) == 2
    assert time.monotonic() - begun < 20
    assert ("give HOST:PORT" if kind == "nonsense" else "no Ray cluster") in capfd.readouterr().err


@pytest.fixture(scope="module")
def local(tmp_path_factory):
    """The same study by the local engine."""
    folder = tmp_path_factory.mktemp("ray")
    (folder / "study.toml").write_text(LONGER)
    typed = ["study", "run", "study.toml", "--store", "local", "--workers", "1"]
    assert command(folder, typed) == 0
    return folder


def command(folder, typed):
    environment = os.environ | {"PYTHONPATH": str(Path(sellf.__file__).parents[1])}
    line = [sys.executable, "-m", "sellf", *typed]
    return subprocess.run(line, cwd=folder, env=environment, check=False).returncode


def content(store):
    return {
        path.name: [(path / file).read_bytes() for file in ("agent.safetensors", RESULTS)]
        for path in (store / "runs").iterdir()
    }


class Watched:
    """An engine that loses a node after its first outcome."""

    def __init__(self, engine, lose):
        self.engine, self.lose, self.outcomes = engine, lose, list[Outcome]()

    def wait(self, seconds):
        found = self.engine.wait(seconds)
        if found and not self.outcomes:
            self.lose()
        self.outcomes += found
        return found

    def __getattr__(self, name):
        return getattr(self.engine, name)


@pytest.mark.slow
def test_a_cluster_that_loses_a_node_ends_complete_and_equal(local, monkeypatch):
    from ray.cluster_utils import Cluster

    from sellf.studies.engines.ray import RayEngine

    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    cluster = Cluster(
        initialize_head=True, head_node_args={"num_cpus": 1, "node_ip_address": "127.0.0.1"}
    )
    try:
        second = cluster.add_node(num_cpus=2, node_ip_address="127.0.0.1")
        store = open_store(local / "cluster")
        study = spec.load(local / "study.toml")
        engine = Watched(
            RayEngine(cluster.address),
            lambda: cluster.remove_node(second, allow_graceful=False),
        )
        assert engine.workers == 3
        tally = run(study, store, engine)
    finally:
        cluster.shutdown()
    assert tally.complete
    assert tally.fresh == len(engine.outcomes) == TOTAL
    assert engine.engine.tried
    assert content(local / "cluster") == content(local / "local")


@pytest.mark.slow
def test_a_head_started_by_hand_is_used_by_its_address(local):
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    line = [str(Path(sys.executable).parent / "ray"), "start", "--head", "--block"]
    head = subprocess.Popen(
        [
            *line,
            f"--port={port}",
            "--node-ip-address=127.0.0.1",
            "--num-cpus=1",
            "--include-dashboard=false",
            "--disable-usage-stats",
        ],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
                break
            except OSError:
                time.sleep(0.5)
        time.sleep(5)
        typed = ["study", "run", "study.toml", "--store", "head", "--engine", "ray"]
        assert command(local, [*typed, "--address", f"127.0.0.1:{port}"]) == 0
    finally:
        head.terminate()
        head.wait(60)
    assert content(local / "head") == content(local / "local")


@pytest.mark.slow
def test_a_cluster_is_started_for_the_purpose_and_ended(local):
    typed = ["study", "run", "study.toml", "--store", "own", "--engine", "ray", "--workers", "1"]
    assert command(local, typed) == 0
    assert content(local / "own") == content(local / "local")
