"""The package as its users meet it: it imports fast, without JAX, and answers on a command line."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

import sellf
from sellf.cli import main

ROOT = Path(__file__).parent.parent


def run_python(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_importing_sellf_imports_neither_jax_nor_anything_slow():
    code = (
        "import sys, sellf; heavy = {'jax', 'scipy', 'pandas', 'polars', 'matplotlib', 'ray', "
        "'gymnasium', 'rich', 'tyro', 'narwhals', 'sklearn'}; "
        "print(sorted(heavy & set(sys.modules)))"
    )
    assert run_python(code) == "[]"


def test_importing_sellf_takes_less_than_four_tenths_of_a_second():
    # The processor's time, and the best of three: others on the machine count less. On a core that
    # shares its arithmetic with a busy one it takes half as long again as on a quiet machine.
    code = "import time; t = time.process_time(); import sellf; print(time.process_time() - t)"
    assert min(float(run_python(code)) for _ in range(3)) < 0.4


def test_every_public_name_exists_and_is_documented():
    for name in sellf.__all__:
        assert getattr(sellf, name).__doc__, name


def test_version_and_help(capsys):
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"sellf {sellf.__version__}\n"
    with pytest.raises(SystemExit) as leaving:
        main(["--help"])
    assert leaving.value.code == 0
    assert "demo" in capsys.readouterr().out


def test_a_word_that_is_no_command_ends_with_exit_code_2(capsys):
    with pytest.raises(SystemExit) as leaving:
        main(["demmo"])
    assert leaving.value.code == 2
    assert "demo" in capsys.readouterr().err


def test_a_value_that_cannot_be_used_is_answered_in_a_sentence_with_exit_code_2(capsys):
    assert main(["demo", "--people", "3", "--log"]) == 2
    error = capsys.readouterr().err
    assert error == "sellf: people is 3: type --people 100 or more, so that both races occur.\n"


def test_demo_shows_what_the_naive_view_hides(capsys):
    assert main(["demo", "--people", "2000", "--steps", "4096"]) == 0
    shown = capsys.readouterr().out
    assert "+0.000" in shown
    assert "What the naive view hides" in shown
    assert "a tool that drops the rejected reports a fair lender" in " ".join(shown.split())


def test_doctests_of_the_mathematics():
    import doctest

    module = sys.modules["sellf.fairness.disparity"]
    result = doctest.testmod(module)
    assert result.attempted > 0
    assert result.failed == 0


def test_the_constraints_pin_every_declared_dependency():
    import tomllib

    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    extras = project["project"]["optional-dependencies"]
    wanted = [
        *project["project"]["dependencies"],
        *(name for extra, names in extras.items() if extra != "all" for name in names),
        *project["dependency-groups"]["dev"],
    ]
    pinned = {line.split("==")[0] for line in (ROOT / "constraints.txt").read_text().splitlines()}
    for requirement in wanted:
        name = requirement.split(">")[0].split("[")[0]
        assert name in pinned, f"{name}: run `make lock`"


@pytest.mark.parametrize("name", ["run", "dev"])
def test_locks_hold_the_same_versions_each_with_its_hashes(name):
    text = (ROOT / "locks" / f"{name}.txt").read_text()
    entries = [entry.split(" \\\n    ") for entry in re.split(r"\n(?=\S)", text.strip())]
    pinned = {entry[0] for entry in entries}
    constraints = set((ROOT / "constraints.txt").read_text().splitlines())
    assert pinned == constraints if name == "dev" else pinned < constraints, "run `make lock`"
    for _, *hashes in entries:
        assert hashes
        assert all(re.fullmatch(r"--hash=sha256:[0-9a-f]{64}", one) for one in hashes)


def test_worlds_fit_into_80_columns(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    assert main(["worlds"]) == 0
    shown = capsys.readouterr().out
    assert max(map(len, shown.splitlines())) <= 80
    assert "…" not in shown
    for word in ("school-continuous ", "lending-amounts ", "African-American, Caucasian"):
        assert word in shown


def test_worlds_are_listed_with_their_figures(capsys):
    assert main(["worlds"]) == 0
    shown = capsys.readouterr().out
    for word in ("lending", "recidivism", "school-", "0.8", "2,048", "Caucasian"):
        assert word in shown
    assert main(["worlds", "lending"]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "score 0-10" in shown
    assert "licence: MIT" in shown
    assert main(["worlds", "lendin"]) == 2
    assert "did you mean 'lending'" in capsys.readouterr().err


def test_the_extras_are_those_that_can_be_installed():
    import tomllib

    from sellf.extras import EXTRAS

    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())
    extras = declared["project"]["optional-dependencies"]
    extras.pop("all")
    packages = {name: [line.split(">")[0] for line in lines] for name, lines in extras.items()}
    assert {name: list(extra.modules) for name, extra in EXTRAS.items()} == packages


def test_what_is_imported_is_declared_and_what_training_declares_is_imported():
    import ast

    from sellf.cli.doctor import CORE
    from sellf.extras import EXTRAS

    trees = [ast.parse(path.read_text("utf-8")) for path in (ROOT / "src").rglob("*.py")]
    nodes = [node for tree in trees for node in ast.walk(tree)]
    imported = {
        alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names
    }
    imported |= {str(node.module) for node in nodes if isinstance(node, ast.ImportFrom)}
    imported = {name.split(".")[0] for name in imported}
    declared = {*CORE, *(module for extra in EXTRAS.values() for module in extra.modules.values())}
    assert imported - sys.stdlib_module_names - {"sellf"} <= declared
    assert set(EXTRAS["train"].modules.values()) <= imported


@pytest.mark.parametrize(
    ("command", "package", "extra"),
    [
        (["worlds"], "jax", "train"),
        (["demo", "--people", "200"], "jax", "train"),
        (["study", "run", "timing", "--quick"], "jax", "train"),
        (["study", "table", "timing", "--quick"], "jax", "train"),
        (
            ["audit", "a.csv", "--group", "g", "--decision", "d", "--outcome", "d"],
            "duckdb",
            "audit",
        ),
    ],
)
def test_a_command_without_its_extra_says_what_to_install(command, package, extra, tmp_path):
    (tmp_path / "a.csv").write_text("g,d\na,1\nb,0\n")
    code = (
        "import sys\n"
        f"sys.modules[{package!r}] = None\n"
        "from sellf.cli import main\n"
        f"sys.exit(main({command!r}))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 2, done.stderr
    assert done.stderr.startswith("sellf: ")
    assert done.stderr.endswith(f"type `pip install 'sellf[{extra}]'`.\n")
    assert done.stderr.count("\n") == 1


def test_an_import_that_fails_for_another_reason_is_not_hidden(monkeypatch):
    import sellf.cli.commands

    def broken(_arguments):
        raise ImportError("libfoo.so: cannot open", name="jax")

    monkeypatch.setattr(sellf.cli.commands, "run", broken)
    with pytest.raises(ImportError, match="libfoo"):
        main(["worlds"])


def test_every_test_in_the_list_of_long_ones_exists():
    """A test that is renamed would silently become one of the default run."""
    listed = ROOT / "tests" / "long.txt"
    lines = [line for line in listed.read_text().splitlines() if not line.startswith("#")]
    assert lines == sorted(set(lines))
    for line in lines:
        path, _, name = line.partition("::")
        assert f"def {name.partition('[')[0]}(" in (ROOT / path).read_text(), line
