"""Runs of somebody else: an address in their folder gets nothing, and no token above all."""

import json
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from types import SimpleNamespace

import pytest

import sellf
from sellf.training import loggers, loop, trackers
from sellf.training.loggers import LogWarning
from sellf.training.trackers import About, MLflow, WeightsAndBiases

SHORT = {"steps": 1024, "rollout": 256, "epochs": 2, "progress": False}
SMALL = {"population": 300, "window": 200}


def about(tmp_path, known):
    return About("run", None, tmp_path / "run", {}, 512, known, False)


@pytest.fixture
def server():
    """Somebody's server, and what it was told."""
    told = []

    class Listen(BaseHTTPRequestHandler):
        def do_GET(self):
            told.append(self.headers.get("Authorization"))
            self.send_response(500)
            self.end_headers()

        do_POST = do_GET  # noqa: N815

        def log_message(self, *_):
            pass

    listening = HTTPServer(("127.0.0.1", 0), Listen)
    threading.Thread(target=listening.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{listening.server_port}", told
    listening.shutdown()
    listening.server_close()


@pytest.mark.filterwarnings("ignore")
def test_a_stored_tracking_address_gets_no_token(tmp_path, server, monkeypatch):
    pytest.importorskip("mlflow")
    address, told = server
    monkeypatch.setenv("MLFLOW_DISABLE_TELEMETRY", "true")
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    monkeypatch.setenv("MLFLOW_TRACKING_TOKEN", "secret")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{tmp_path / 'mine.db'}")
    monkeypatch.setenv("SELLF_CACHE", str(tmp_path / "cache"))

    def stop(iteration, row):
        raise MemoryError

    with pytest.raises(MemoryError):
        sellf.train(
            "lending",
            "ppo",
            out=tmp_path / "run",
            world_settings=SMALL,
            log=["mlflow", stop],
            **SHORT,
        )
    path = tmp_path / "run" / loggers.IDENTITIES
    path.write_text(json.dumps({"mlflow": {"uri": address, "run": "0" * 32}}))
    with pytest.warns(LogWarning, match="another uri is configured here.*MLFLOW_TRACKING_URI"):
        loop.resume(tmp_path / "run", progress=False)
    assert told == []
    from mlflow.tracking import MlflowClient

    run = json.loads(path.read_text())["mlflow"]["run"]
    assert len(MlflowClient().get_metric_history(run, "reward")) == 4


@pytest.mark.filterwarnings("ignore")
def test_the_configured_address_is_gone_on_with(tmp_path, monkeypatch):
    pytest.importorskip("mlflow")
    monkeypatch.setenv("MLFLOW_DISABLE_TELEMETRY", "true")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{tmp_path / 'mine.db'}")
    first = MLflow(about(tmp_path, None))
    assert MLflow(about(tmp_path, first.identity)).id == first.id


def test_weights_and_biases_takes_no_more_than_an_id_from_a_run(tmp_path, monkeypatch):
    told = []
    started = SimpleNamespace(resumed=False)
    fake = SimpleNamespace(
        init=lambda **options: told.append(options) or started,
        Settings=lambda **options: options,
    )
    monkeypatch.setattr(trackers, "import_module", lambda name: fake)
    monkeypatch.delenv("WANDB_PROJECT", raising=False)
    known = {"id": "abc", "project": "sellf", "settings": "{}", "entity": "other", "mode": "x"}
    WeightsAndBiases(about(tmp_path, known))
    assert (told[0]["id"], told[0]["project"]) == ("abc", "sellf")
    assert not {"entity", "mode"} & set(told[0])
    assert told[0]["settings"] == {"console": "off", "silent": True}
    with pytest.warns(LogWarning, match="WANDB_PROJECT"):
        WeightsAndBiases(about(tmp_path, known | {"project": "theirs"}))
    assert told[1]["id"] != "abc"
    assert told[1]["project"] == "sellf"


def test_identities_that_are_none_are_left_out():
    assert loggers._texts(["uri"]) is None
    assert loggers._texts({"id": "a", "settings": {"base_url": "http://x"}}) == {"id": "a"}
