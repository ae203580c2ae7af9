"""`sellf doctor` tells what is here and what is broken, whatever is missing."""

import json
import os
import platform
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

import sellf
from sellf.cli import main
from sellf.extras import EXTRAS


@pytest.fixture
def here(tmp_path, monkeypatch) -> Path:
    """An empty folder with a cache of its own, and no store."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SELLF_STORE", raising=False)
    monkeypatch.setenv("COLUMNS", "200")
    keep_programs_in(tmp_path / "cache", monkeypatch)
    return tmp_path


def keep_programs_in(folder: Path | str | None, monkeypatch) -> None:
    compiling = pytest.importorskip("sellf.compiling")
    monkeypatch.setattr(compiling, "cache_folder", lambda: folder and str(folder))


def found(capsys, code: int = 0) -> dict:
    try:
        assert main(["doctor", "--json"]) == code == 0
    except SystemExit as leaving:
        assert leaving.code == code
    return json.loads(capsys.readouterr().out)


def test_versions_devices_and_extras_are_those_of_this_environment(here, capsys):
    facts = found(capsys)
    assert facts["sellf"] == sellf.__version__
    assert facts["python"] == platform.python_version()
    assert facts["packages"]["numpy"] == version("numpy")
    assert facts["devices"] == ["cpu 0: cpu"]
    train = facts["extras"]["train"]
    assert train["packages"]["jax"] == version("jax")
    assert train["install"] is None
    assert facts["problems"] == []
    assert facts["store"] is None


def test_what_is_printed_says_what_to_type_for_an_extra_that_is_missing(here, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    assert main(["doctor"]) == 0
    shown = capsys.readouterr().out
    assert "pip install 'sellf[ray]'" in shown
    assert "pip install 'sellf[train]'" not in shown
    assert f"jax {version('jax')}" in shown
    assert shown.endswith("Nothing is broken.\n")


def test_the_cache_is_measured(here, capsys):
    assert found(capsys)["cache"] == {"folder": str(here / "cache"), "programs": 0, "bytes": 0}
    assert not (here / "cache").exists()
    (here / "cache").mkdir()
    for name in ("one", "two"):
        (here / "cache" / name).write_bytes(b"x" * 1000)
    assert found(capsys)["cache"] == {"folder": str(here / "cache"), "programs": 2, "bytes": 2000}


def test_a_cache_that_cannot_be_written_is_broken_and_the_answer_is_said(here, capsys, monkeypatch):
    (here / "file").touch()
    keep_programs_in(here / "file" / "cache", monkeypatch)
    (problem,) = found(capsys, code=1)["problems"]
    assert str(here / "file" / "cache") in problem
    assert "export SELLF_CACHE=FOLDER" in problem
    with pytest.raises(SystemExit) as leaving:
        main(["doctor"])
    assert leaving.value.code == 1
    assert "broken: compiled programs cannot be stored" in capsys.readouterr().out


@pytest.mark.parametrize("folder", [None, "gs://bucket/cache"])
def test_no_cache_or_one_elsewhere_is_nothing_broken(folder, here, capsys, monkeypatch):
    keep_programs_in(folder, monkeypatch)
    cache = found(capsys)["cache"]
    assert cache is None if folder is None else cache["folder"] == folder
    assert main(["doctor"]) == 0


def test_the_store_is_counted(here, capsys):
    from sellf.studies.store import open_store

    store = open_store()
    (store.folder / "runs" / "one").mkdir()
    assert found(capsys)["store"] == {
        "folder": "sellf-store",
        "runs": 1,
        "failed": 0,
        "made_with": {"sellf": sellf.__version__, "jax": version("jax")},
    }


def test_a_damaged_store_is_broken(here, capsys):
    (here / "sellf-store").mkdir()
    (here / "sellf-store" / "store.json").write_text("{")
    (problem,) = found(capsys, code=1)["problems"]
    assert "store.json is damaged" in problem


def in_a_process(setup: str, folder: Path) -> tuple[int, dict]:
    start = "from sellf.cli import main\nsys.exit(main(['doctor', '--json']))"
    code = f"import sys, sellf\n{setup}\n{start}"
    own = os.environ | {"SELLF_CACHE": str(folder / "cache")}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=folder, env=own, capture_output=True, text=True
    )
    assert done.stdout, done.stderr
    return done.returncode, json.loads(done.stdout)


def test_it_works_with_nothing_but_the_packages_that_are_always_there(tmp_path):
    modules = [module for extra in EXTRAS.values() for module in extra.modules.values()]
    code, facts = in_a_process(f"sys.modules.update(dict.fromkeys({modules}))", tmp_path)
    assert code == 0
    assert facts["devices"] == []
    for name, extra in facts["extras"].items():
        assert extra["install"] == f"pip install 'sellf[{name}]'"
        assert set(extra["packages"].values()) == {None}


def test_jax_that_fails_to_start_is_broken(tmp_path):
    code, facts = in_a_process("import os; os.environ['JAX_PLATFORMS'] = 'rocketship'", tmp_path)
    assert code == 1
    (problem,) = facts["problems"]
    assert "rocketship" in problem
    assert "pip install --force-reinstall 'sellf[train]'" in problem
