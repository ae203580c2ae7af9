"""Names are data: no path, no markup, no command to a terminal."""

import json
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path

import pytest

import sellf
from sellf import files
from sellf.cli import main
from sellf.studies import spec
from sellf.text import name, plain
from tests.studies.tiny import TEXT

EVIL = "\x1b]0;title\x07\x1b[31m\u202eab\x85\x00[/red][b]"
SHORT = {"steps": 1024, "rollout": 256, "epochs": 2, "progress": False}


@pytest.mark.parametrize(
    "given", ["../../outside/evil", "/tmp/evil", "..", ".hidden", "a/b", "", "x" * 101, "a\nb"]
)
def test_a_study_s_name_is_no_path(given, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("s.toml").write_text(TEXT.replace('"tiny"', json.dumps(given)))
    assert main(["study", "table", "s.toml", "--store", "store"]) == 2
    assert "s.toml, line 2: name is" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["s.toml"]


def test_a_study_without_a_name_is_called_like_its_file(tmp_path):
    text = TEXT.replace('name = "tiny"', "")
    assert spec.parse(text, "folder/my study (1).toml").name == "my study -1-"
    assert spec.parse(text, "...toml").name == "-"


def test_no_file_s_content_is_told_by_naming_it_as_microdata(tmp_path, capsys):
    (tmp_path / "secret").write_text("password:x:0:0\nmore")
    text = TEXT.replace("lending", "school")
    text += f'\n[world_settings.school]\nmicrodata = "{tmp_path / "secret"}"\n'
    (tmp_path / "study.toml").write_text(text)
    assert main(["study", "status", str(tmp_path / "study.toml")]) == 2
    told = capsys.readouterr().err
    assert "secret" in told
    assert "password" not in told


def test_a_saved_agent_does_not_make_anybody_read_a_file(tmp_path, jax, monkeypatch, capsys):
    monkeypatch.setenv("SELLF_CACHE", str(tmp_path / "cache"))
    agent = sellf.train("lending", "ppo", **SHORT)
    agent.save(tmp_path / "agent")
    config = json.loads((tmp_path / "agent" / "config.json").read_text())
    (tmp_path / "secret.csv").write_text("a;b\n")
    changed = {"world": "school", "world_settings": {"microdata": str(tmp_path / "secret.csv")}}
    (tmp_path / "agent" / "config.json").write_bytes(files.sealed_json(config | changed))
    assert main(["evaluate", str(tmp_path / "agent")]) == 2
    assert "a file that loading does not read" in capsys.readouterr().err


@pytest.fixture(scope="module")
def run(tmp_path_factory, jax):
    """A run in a world whose names are anything but names, in a folder called like markup."""
    folder = tmp_path_factory.mktemp("names")
    world = sellf.world_from_frame(
        {"group": [EVIL, "[bold]b[/bold]"] * 20, "score": [0, 1, 2, 3] * 10},
        group="group",
        categorical=["score"],
        label=lambda x: x["score"] / 4,
        cost=0.3,
        population=300,
        window=200,
        horizon=200,
        name=EVIL.replace("\x00", ""),
    )
    said = StringIO()
    with pytest.MonkeyPatch.context() as patch, redirect_stderr(said):
        patch.setenv("SELLF_CACHE", str(folder / "cache"))
        sellf.train(world, "ppo", out=folder / "a[/b]", **SHORT | {"progress": True})
    return folder / "a[/b]", said.getvalue()


def commands(text):
    return [c for c in text if (ord(c) < 32 and c not in "\n\t") or c in "\x7f\x85\u202e"]


def test_nothing_in_a_name_commands_the_terminal(run, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    folder, said = run
    assert not commands(said)
    assert main(["evaluate", str(folder), "--deployments", "2"]) == 0
    out = capsys.readouterr().out
    assert not commands(out)
    assert "[bold]b[/bold]" in "".join(out.split())
    assert main(["train", "--resume", str(folder), "--quiet"]) == 0
    err = capsys.readouterr().err
    assert not commands(err)
    assert "a[/b]" in err.replace("\n", "")


def test_a_folder_called_like_markup_does_not_fail_after_the_training(tmp_path, monkeypatch, jax):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SELLF_CACHE", "cache")
    command = [
        "train",
        "lending",
        "ppo",
        "--steps",
        "512",
        "--set",
        "rollout=256",
        "population=300",
    ]
    with redirect_stdout(StringIO()), redirect_stderr(StringIO()) as said:
        assert main([*command, "--out", "a[/b]", "--quiet"]) == 0
    assert "is trained: a[/b]" in said.getvalue()


def test_a_result_s_table_shows_names_and_does_not_do_them():
    result = sellf.disparity(
        "opportunity", group=[EVIL, "b"] * 10, action=[1, 0] * 10, label=[1] * 20
    )
    assert not commands(str(result))


def test_names_as_text():
    assert plain("Zoë, 渡辺 and a\ttab\n") == "Zoë, 渡辺 and a\ttab\n"
    assert plain("\x1b[2J") == "\\x1b[2J"
    assert plain("\ud800") == "\\ud800"
    assert name("a\n[b]").plain == "a\\n[b]"


def test_a_page_keeps_groups_apart_from_the_objects_that_hold_them():
    script = (Path(sellf.__file__).parent / "report" / "assets" / "report.js").read_text()
    assert "swatches = {}" not in script
    assert "swatches = Object.create(null)" in script
