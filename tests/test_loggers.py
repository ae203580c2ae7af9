"""Logs of a training, read back by something else than what wrote them."""

import json
import os
import struct
import time
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import sellf
from sellf.cli import main
from sellf.errors import InputError
from sellf.training import loggers, loop, run_folder, trackers
from sellf.training.loggers import LogWarning
from sellf.training.trackers import About, TensorBoard

ROLLOUT, ITERATIONS = 256, 8
SHORT = {
    "steps": ROLLOUT * ITERATIONS,
    "rollout": ROLLOUT,
    "epochs": 2,
    "progress": False,
    "world_settings": {"population": 300, "window": 200},
}
STEPS = [ROLLOUT * (i + 1) for i in range(ITERATIONS)]


def needs(*packages):
    lost = [name for name in packages if find_spec(name) is None]
    return pytest.mark.skipif(bool(lost), reason=f"not installed: {', '.join(lost)}")


tensorboard = needs("tensorboardX", "tensorboard")


@pytest.fixture(autouse=True, scope="module")
def _cache(tmp_path_factory):
    """Compiled programs are shared between the tests of this module."""
    os.environ["SELLF_CACHE"] = str(tmp_path_factory.mktemp("cache"))
    yield
    del os.environ["SELLF_CACHE"]


@pytest.fixture(autouse=True)
def _somewhere(tmp_path, monkeypatch):
    """Whatever is written without being given a place is written here."""
    monkeypatch.chdir(tmp_path)


@pytest.fixture(scope="module")
def plain(_cache):
    """The run that all others must be, whatever is logged."""
    return sellf.train("lending", "ppo", **SHORT)


def train(**options):
    return sellf.train("lending", "ppo", **{**SHORT, **options})


def killed(monkeypatch, at=5, **options):
    """Train until a moment at which the log knows more than the last checkpoint."""
    record = run_folder.Run.record

    def stop(self, iteration, row, state, last):
        if iteration == at:
            raise MemoryError("killed")
        record(self, iteration, row, state, last)

    with monkeypatch.context() as patch:
        patch.setattr(run_folder, "CHECKPOINT_EVERY", 2)
        patch.setattr(run_folder.Run, "record", stop)
        with pytest.raises(MemoryError, match="killed"):
            train(**options)


def same(one, other):
    return np.array_equal(np.asarray(one.parameters), np.asarray(other.parameters))


def column(agent, name):
    return np.array([row[name] for row in agent.history], np.float32)


def events(folder):
    """Read a folder as TensorBoard does."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TF_CPP_MIN_LOG_LEVEL", "3")
        from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    found = EventAccumulator(str(folder), size_guidance={"scalars": 0})
    found.Reload()
    return found


def points(found, tag):
    scalars = found.Scalars(tag)
    return [point.step for point in scalars], np.array([p.value for p in scalars], np.float32)


def check_events(folder, agent):
    found = events(folder)
    for tag, expected in (
        ("reward", column(agent, "reward")),
        ("disparity_true", column(agent, "disparity_true")),
        ("acceptance/Black", column(agent, "acceptance")[:, 0]),
        ("acceptance/White", column(agent, "acceptance")[:, 1]),
    ):
        steps, values = points(found, tag)
        assert steps == STEPS, tag
        np.testing.assert_array_equal(values, expected)
    # The last tenth of eight iterations is the last one.
    steps, values = points(found, "final/reward")
    assert steps == STEPS[-1:]
    assert values[0] == column(agent, "reward")[-1]
    return found


@tensorboard
@pytest.mark.filterwarnings("ignore")
def test_tensorboard_shows_every_figure_by_decisions_and_the_settings(tmp_path, plain):
    agent = train(out="first", log="tensorboard")
    assert same(agent, plain)
    found = check_events(tmp_path / "first" / "tensorboard", agent)
    from tensorboard.plugins.hparams.plugin_data_pb2 import HParamsPluginData

    content = found.SummaryMetadata("_hparams_/session_start_info").plugin_data.content
    settings = HParamsPluginData.FromString(content).session_start_info.hparams
    assert settings["learning_rate"].number_value == agent.config["learning_rate"]
    assert settings["algorithm"].string_value == "ppo"
    assert settings["world.population"].number_value == 300
    assert set(agent.config) < set(settings)


@tensorboard
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("lost", [0, 700, 10_000_000])
def test_tensorboard_goes_on_with_neither_double_nor_missing_points(
    tmp_path, plain, monkeypatch, lost
):
    killed(monkeypatch, out="first", log="tensorboard")
    folder = tmp_path / "first" / "tensorboard"
    (file,) = folder.iterdir()
    # What had not reached the disk when the run was killed; at worst, everything.
    file.write_bytes(file.read_bytes()[: -lost or None])
    assert json.loads((tmp_path / "first" / "config.json").read_text())["log"] == ["tensorboard"]
    agent = loop.resume("first", progress=False)
    assert same(agent, plain)
    check_events(folder, plain)
    loop.resume("first", progress=False)
    check_events(folder, plain)


@tensorboard
@pytest.mark.filterwarnings("ignore")
def test_runs_side_by_side_are_logged_one_by_one(tmp_path):
    seen = []
    agents = train(
        configs=[{"learning_rate": 1e-4}, {"learning_rate": 3e-4}],
        seeds=[0, 1],
        log=["tensorboard", lambda iteration, row: seen.append((iteration, row))],
    )
    folder = tmp_path / "runs" / "lending-ppo-opportunity"
    assert sorted(path.name for path in folder.iterdir()) == [
        "0-seed=0-learning_rate=0.0001",
        "1-seed=1-learning_rate=0.0001",
        "2-seed=0-learning_rate=0.0003",
        "3-seed=1-learning_rate=0.0003",
    ]
    for agent, path in zip(agents, sorted(folder.iterdir()), strict=True):
        check_events(path / "tensorboard", agent)
    assert [(i, row["run"]) for i, row in seen] == [
        (i, j) for i in range(ITERATIONS) for j in range(4)
    ]
    assert seen[-1][1]["reward"] == agents[3].history[-1]["reward"]


@tensorboard
@pytest.mark.filterwarnings("ignore")
def test_a_run_without_a_folder_is_logged_under_runs(tmp_path, plain):
    for name in ("lending-ppo-opportunity-0", "lending-ppo-opportunity-0-2"):
        agent = train(log="tensorboard")
        check_events(tmp_path / "runs" / name / "tensorboard", agent)
    assert same(agent, plain)


@tensorboard
@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore:Exception ignored in")
def test_a_full_disk_ends_the_log_with_one_warning_and_not_the_run(monkeypatch, plain, tmp_path):
    import tensorboardX.record_writer as records

    if not Path("/dev/full").exists():
        pytest.skip("needs /dev/full")
    monkeypatch.setattr(records, "open_file", lambda path: open("/dev/full", "wb"))  # noqa: PTH123, SIM115
    with pytest.warns(LogWarning) as warned:
        agent = train(out="first", log="tensorboard")
    (message,) = (str(w.message) for w in warned if issubclass(w.category, LogWarning))
    assert "the log to tensorboard of first failed" in message
    assert "No space left" in message
    assert same(agent, plain)
    assert same(sellf.load("first"), plain)


class Fails:
    """A tracker that fails at the given call."""

    identity = None
    last = 0

    def __init__(self, about):
        self.calls = 0
        self.at = {"early": 3, "late": 99, "never": -1}[about.name.partition("-")[0]]
        if self.at < 0:
            raise ConnectionError("no network\nand a long story")

    def log(self, decisions, figures):
        self.calls += 1
        if self.calls == self.at:
            raise ConnectionError("no network")

    def close(self, decisions, summary, status):
        assert self.calls == ITERATIONS
        raise ConnectionError("no network")


@pytest.mark.parametrize("name", ["never", "early", "late"])
def test_a_tracker_that_fails_whenever_is_left_out_and_the_others_go_on(monkeypatch, plain, name):
    monkeypatch.setitem(loggers.TRACKERS, "wandb", ("json", Fails))
    seen = []
    with pytest.warns(LogWarning) as warned:
        agent = train(out=name, log=["wandb", lambda i, row: seen.append(row["reward"])])
    assert [str(w.message) for w in warned] == [
        f"the log to wandb of {name} failed and is disabled from here on; the training continues. "
        "(ConnectionError: no network)"
    ]
    assert same(agent, plain)
    assert seen == [row["reward"] for row in plain.history]


@pytest.mark.filterwarnings("default::sellf.training.loggers.LogWarning")
def test_on_the_command_line_a_log_that_fails_is_one_sentence(monkeypatch, capsys):
    monkeypatch.setitem(loggers.TRACKERS, "wandb", ("json", Fails))
    words = ["--set", "rollout=256", "epochs=2", "population=300", "window=200"]
    size = ["--steps", str(SHORT["steps"]), "--quiet", "--log", "wandb"]
    assert main(["train", "lending", "ppo", "--out", "early", *size, *words]) == 0
    first, *rest = capsys.readouterr().err.splitlines()
    assert first.startswith("sellf: the log to wandb of early failed")
    assert rest[0] == "ppo on lending is trained: early"


def test_a_function_of_one_s_own_cannot_change_the_run_nor_its_metrics(plain):
    seen = []

    def scribble(iteration, row):
        seen.append((iteration, row["reward"]))
        row["acceptance"][0] = -1.0
        row.clear()

    agent = train(out="first", log=scribble)
    assert same(agent, plain)
    assert agent.history == plain.history == sellf.load("first").history
    assert seen == [(row["iteration"], row["reward"]) for row in plain.history]
    assert json.loads(Path("first/config.json").read_text())["log"] == []


def test_when_a_function_of_one_s_own_raises_the_iteration_is_kept(plain):
    def fail(iteration, row):
        if iteration == 3:
            raise ZeroDivisionError("mine")

    with pytest.raises(ZeroDivisionError, match="mine"):
        train(out="first", log=fail)
    rows = Path("first/metrics.jsonl").read_text().splitlines()
    assert [json.loads(row) for row in rows] == plain.history[:4]
    rest = []
    agent = loop.resume("first", progress=False, log=lambda i, row: rest.append(i))
    assert rest == [4, 5, 6, 7]
    assert same(agent, plain)


def wandb_records(path):
    """Read a W&B file: a seven-byte head, then LevelDB's log format."""
    from wandb.proto.wandb_internal_pb2 import Record

    content, at, whole = path.read_bytes(), 7, b""
    while at + 7 <= len(content):
        left = 32768 - at % 32768
        if left < 7:
            at += left
            continue
        _, length, kind = struct.unpack_from("<IHB", content, at)
        whole += content[at + 7 : at + 7 + length]
        at += 7 + length
        if kind in (1, 4):
            yield Record.FromString(whole)
            whole = b""


def wandb_whole(path):
    """Wait for the last record: W&B's own process writes on after a run has finished."""
    for _ in range(100):
        records = list(wandb_records(path))
        if records and records[-1].WhichOneof("record_type") == "exit":
            return records
        time.sleep(0.1)
    raise AssertionError(f"{path.name} was never finished")


def wandb_rows(records):
    for record in records:
        if record.WhichOneof("record_type") == "history":
            yield {
                (item.key or "/".join(item.nested_key)): json.loads(item.value_json)
                for item in record.history.item
            }


@needs("wandb")
@pytest.mark.filterwarnings("ignore")
def test_weights_and_biases_offline_keeps_every_figure_under_one_id(tmp_path, plain, monkeypatch):
    for name, value in (("MODE", "offline"), ("SILENT", "true"), ("ERROR_REPORTING", "false")):
        monkeypatch.setenv(f"WANDB_{name}", value)

    def stop(iteration, row):
        if iteration == 4:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(out="first", log=["wandb", stop])
    agent = loop.resume("first", progress=False)
    assert same(agent, plain)
    sittings = sorted(tmp_path.glob("first/wandb/offline-run-*/*.wandb"))
    assert len(sittings) == 2
    assert len({path.name for path in sittings}) == 1
    records = [wandb_whole(path) for path in sittings]
    rows = [row for each in records for row in wandb_rows(each)]
    assert [row["_step"] for row in rows] == STEPS
    for tag, expected in (
        ("reward", column(plain, "reward")),
        ("acceptance/White", column(plain, "acceptance")[:, 1]),
    ):
        np.testing.assert_array_equal(np.array([row[tag] for row in rows], np.float32), expected)
    run = next(r.run for r in records[0] if r.WhichOneof("record_type") == "run")
    assert run.display_name == "first"
    config = {item.key: json.loads(item.value_json) for item in run.config.update}
    assert config["learning_rate"] == plain.config["learning_rate"]
    assert config["world"] == "lending"
    summary = {
        (item.key or "/".join(item.nested_key)): json.loads(item.value_json)
        for record in records[1]
        if record.WhichOneof("record_type") == "summary"
        for item in record.summary.update
    }
    assert np.float32(summary["final/reward"]) == column(plain, "reward")[-1]


def test_weights_and_biases_online_is_gone_on_with_where_it_ended(plain, monkeypatch):
    sent = {}

    class Run:
        """What the server knows of a run that was killed: it has the first three points."""

        def __init__(self, id, **options):
            self.id, self.summary = id, {}
            self.resumed, self.starting_step = id in sent, STEPS[2] + 1
            self.points = sent.setdefault(id, [])
            del self.points[3:]

        def log(self, figures, step):
            self.points.append(step)

        def finish(self, exit_code):
            assert exit_code == (0 if len(self.points) == ITERATIONS else 1)

    fake = SimpleNamespace(init=Run, Settings=lambda **options: options)
    monkeypatch.setattr(loggers, "find_spec", lambda name: True)
    monkeypatch.setattr(trackers, "import_module", lambda name: fake)
    killed(monkeypatch, out="first", log="wandb")
    assert same(loop.resume("first", progress=False), plain)
    assert list(sent.values()) == [STEPS]


@needs("mlflow", "sqlalchemy", "alembic")
@pytest.mark.filterwarnings("ignore")
def test_mlflow_keeps_every_figure_once_in_one_run(tmp_path, plain, monkeypatch):
    monkeypatch.setenv("MLFLOW_DISABLE_TELEMETRY", "true")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{tmp_path / 'mlflow.db'}")
    killed(monkeypatch, out="first", log="mlflow")
    from mlflow.tracking import MlflowClient

    client = MlflowClient()
    experiment = client.get_experiment_by_name("sellf").experiment_id
    (run,) = client.search_runs([experiment])
    assert run.info.status == "FAILED"
    # The run is found again from another folder, as long as the address is the same.
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    agent = loop.resume(tmp_path / "first", progress=False)
    assert same(agent, plain)
    assert not list(Path().iterdir())
    (run,) = client.search_runs([experiment])
    assert run.info.status == "FINISHED"
    assert run.info.run_name == "first"
    assert float(run.data.params["learning_rate"]) == plain.config["learning_rate"]
    assert run.data.params["world"] == "lending"
    assert run.data.metrics["final/reward"] == plain.history[-1]["reward"]
    for tag, expected in (
        ("reward", column(plain, "reward")),
        ("acceptance/White", column(plain, "acceptance")[:, 1]),
    ):
        found = sorted(client.get_metric_history(run.info.run_id, tag), key=lambda p: p.step)
        assert [point.step for point in found] == STEPS
        np.testing.assert_array_equal(np.array([p.value for p in found], np.float32), expected)


@pytest.mark.parametrize(
    ("log", "sentence"),
    [
        ("tensorbord", "did you mean 'tensorboard'?"),
        (["mlflow", "wanb"], "did you mean 'wandb'?"),
        (5, "log is 5: It is one of 'tensorboard', 'wandb', 'mlflow'."),
    ],
)
def test_a_log_that_does_not_exist_is_answered_with_the_nearest(log, sentence, monkeypatch):
    monkeypatch.setattr(loggers, "find_spec", lambda name: True)
    with pytest.raises(InputError) as refused:
        train(out="first", log=log)
    assert sentence in str(refused.value)
    assert not Path("first").exists()


@pytest.mark.parametrize("name", list(loggers.TRACKERS))
def test_a_missing_package_is_answered_with_the_extra_before_anything_is_written(
    name, monkeypatch, capsys
):
    monkeypatch.setattr(loggers, "find_spec", lambda name: None)
    assert main(["train", "lending", "ppo", "--out", "first", "--log", name]) == 2
    assert f"type `pip install 'sellf[{name}]'`." in capsys.readouterr().err
    assert not Path("first").exists()


def test_the_extras_are_named_as_the_logs_and_bring_their_packages():
    import tomllib

    text = (Path(__file__).parent.parent / "pyproject.toml").read_text()
    extras = tomllib.loads(text)["project"]["optional-dependencies"]
    for name, (package, _) in loggers.TRACKERS.items():
        assert any(line.startswith(package.lower()) for line in extras[name])


@tensorboard
@pytest.mark.filterwarnings("ignore")
def test_the_command_line_logs_and_goes_on_logging(tmp_path, plain, capsys):
    assert main(["train", "lending", "ppo", "--log", "tensorbord"]) == 2
    assert "did you mean 'tensorboard'" in capsys.readouterr().err
    words = ["--set", "rollout=256", "epochs=2", "population=300", "window=200"]
    size = ["--steps", str(SHORT["steps"]), "--quiet", "--log", "tensorboard"]
    assert main(["train", "lending", "ppo", "--out", "first", *size, *words]) == 0
    check_events(tmp_path / "first" / "tensorboard", plain)
    assert main(["train", "--resume", "first", "--quiet"]) == 0
    check_events(tmp_path / "first" / "tensorboard", plain)


@tensorboard
@pytest.mark.filterwarnings("ignore")
def test_names_that_a_tracker_would_refuse_are_spelled_in_its_letters(tmp_path):
    about = About("run", None, tmp_path, {"seed": 0}, 0, None, False)
    log = TensorBoard(about)
    log.log(10, {"acceptance/<25 & über>": 0.5})
    log.close(10, {}, "stopped")
    assert events(tmp_path / "tensorboard").Tags()["scalars"] == ["acceptance/_25 _ über_"]
