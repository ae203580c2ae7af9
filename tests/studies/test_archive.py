"""A study's runs as one small file: what is exported here goes on there."""

import io
import tarfile

import numpy as np
import pytest

from sellf.cli import main
from sellf.errors import InputError
from sellf.studies import archive, plan, tables
from sellf.studies.results import results
from sellf.studies.run import run
from sellf.studies.store import merge, open_store
from tests.studies.tiny import TEXT, FakeEngine, study


@pytest.fixture
def kept(tmp_path):
    store = open_store(tmp_path / "store")
    run(study(), store, FakeEngine())
    return store


def changed(path, change):
    """Rewrite an archive, entry by entry."""
    with tarfile.open(path) as old:
        entries = [(entry.name, old.extractfile(entry).read()) for entry in old]
    with tarfile.open(path, "w:xz") as new:
        for name, content in change(entries):
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            new.addfile(entry, io.BytesIO(content))


def test_a_study_that_came_as_a_file_has_the_same_tables_and_nothing_left_to_do(kept, tmp_path):
    path = tmp_path / "tiny.tar.xz"
    number = archive.export(study(), kept, path)
    assert number == len(kept.done())
    there = open_store(tmp_path / "there")
    assert archive.merge(there, path) == (number, 0, [])
    assert archive.merge(there, path) == (0, number, [])
    ours, theirs = (tables.markdown(results(study(), store)) for store in (kept, there))
    assert ours == theirs
    assert run(study(), there, FakeEngine()).fresh == 0
    # Runs that came so are copied from store to store as any other.
    assert merge(open_store(tmp_path / "third"), there.folder)[0] == number


def test_an_exported_run_has_means_over_deployments_and_no_agent(kept, tmp_path):
    archive.export(study(), kept, tmp_path / "tiny.tar.xz")
    there = open_store(tmp_path / "there")
    archive.merge(there, tmp_path / "tiny.tar.xz")
    for name in kept.done():
        full, small = kept.read(name), there.read(name)
        assert not (there.path(name) / "agent.safetensors").exists()
        assert not small.metrics
        np.testing.assert_allclose(small.evaluation.rewards, full.evaluation.rewards, rtol=1e-6)
        for view, values in full.evaluation.by_time.items():
            expected = values if view == "time" else values.mean(axis=0, keepdims=True)
            np.testing.assert_allclose(small.evaluation.by_time[view], expected, rtol=1e-5)


def test_figures_of_training_are_kept_where_the_study_draws_them(tmp_path):
    made = study('draw = ["ablation-renyi"]\n' + TEXT)
    store = open_store(tmp_path / "store")
    run(made, store, FakeEngine())
    archive.export(made, store, tmp_path / "tiny.tar.xz")
    there = open_store(tmp_path / "there")
    archive.merge(there, tmp_path / "tiny.tar.xz")
    name = plan.key(plan.groups(made)[0].first(made)[0])
    np.testing.assert_array_equal(
        there.read(name).metrics["reward"], store.read(name).metrics["reward"]
    )


def test_damaged_and_forged_archives_are_refused_or_their_runs_left_out(kept, tmp_path):
    path = tmp_path / "tiny.tar.xz"
    archive.export(study(), kept, path)
    whole = path.read_bytes()

    def flipped(entries):
        return [(n, c[:-1] + b"!" if n.endswith("results.safetensors") else c) for n, c in entries]

    changed(path, flipped)
    came, _, damaged = archive.merge(open_store(tmp_path / "a"), path)
    assert came == 0
    assert len(damaged) == len(kept.done())
    for number, name in enumerate(
        ("../evil", "runs/../../evil", "runs/x/config.json", "/etc/evil")
    ):
        path.write_bytes(whole)
        changed(path, lambda entries, name=name: [*entries, (name, b"x")])
        with pytest.raises(InputError, match="no archive of runs"):
            archive.merge(open_store(tmp_path / f"b{number}"), path)
    for content in (whole[: len(whole) // 2], b"", b"no archive at all"):
        path.write_bytes(content)
        with pytest.raises(InputError, match="no archive of runs"):
            archive.merge(open_store(tmp_path / "c"), path)
    path.write_bytes(whole)
    changed(path, lambda entries: [(n, c.replace(b'"jax"', b'"jay"')) for n, c in entries])
    with pytest.raises(InputError):
        archive.merge(open_store(tmp_path / "d"), path)


def test_export_and_merge_from_the_command_line(kept, tmp_path, capsys):
    (tmp_path / "tiny.toml").write_text(TEXT)
    out, typed = tmp_path / "runs.tar.xz", str(tmp_path / "tiny.toml")
    assert main(["study", "export", typed, "--store", str(kept.folder), "--out", str(out)]) == 0
    assert f"{len(kept.done())} runs" in capsys.readouterr().out
    there = tmp_path / "there"
    assert main(["study", "merge", str(out), "--store", str(there)]) == 0
    assert f"{len(kept.done())} runs were added" in capsys.readouterr().out
