"""What users install: the wheel and the source archive, built here, used from elsewhere."""

import json
import os
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from importlib.metadata import distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement

import sellf

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src"
CORE = ("narwhals", "numpy", "rich", "scipy", "tyro")


@pytest.fixture(scope="module")
def built(tmp_path_factory) -> Path:
    """Build both archives, the wheel from the source archive, without a network."""
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", folder, ROOT]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def package_files() -> dict[str, bytes]:
    return {
        path.relative_to(SOURCE).as_posix(): path.read_bytes()
        for path in (SOURCE / "sellf").rglob("*")
        if path.is_file() and path.suffix not in (".pyc", ".tmp")
    }


def test_the_wheel_holds_every_file_of_the_package_and_nothing_else(built):
    (path,) = built.glob("*.whl")
    with zipfile.ZipFile(path) as wheel:
        inside = {name: wheel.read(name) for name in wheel.namelist() if ".dist-info/" not in name}
    expected = package_files()
    assert sorted(inside) == sorted(expected)
    assert inside == expected
    for needed in ("py.typed", "envs/data/fico.csv", "studies/builtin/paper-main.toml"):
        assert f"sellf/{needed}" in inside


def test_the_wheel_says_what_it_is(built):
    (path,) = built.glob("*.whl")
    assert path.name == f"sellf-{sellf.__version__}-py3-none-any.whl"
    with zipfile.ZipFile(path) as wheel:
        folder = f"sellf-{sellf.__version__}.dist-info"
        metadata = wheel.read(f"{folder}/METADATA").decode()
        assert "sellf = sellf.cli:entry" in wheel.read(f"{folder}/entry_points.txt").decode()
        for ours in ("LICENSE", "NOTICE.md", "src/sellf/report/assets/echarts.LICENSE"):
            assert f"{folder}/licenses/{ours}" in wheel.namelist()
    assert "# sellf" in metadata
    always = [
        Requirement(line.removeprefix("Requires-Dist: ")).name
        for line in metadata.splitlines()
        if line.startswith("Requires-Dist: ") and "extra ==" not in line
    ]
    assert sorted(always) == sorted(CORE)


def test_the_source_archive_can_be_tested_and_built_again(built):
    (path,) = built.glob("*.tar.gz")
    with tarfile.open(path) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    needed = {
        "pyproject.toml", "Makefile", "constraints.txt", "README.md", "LICENSE", "CITATION.cff",
        "NOTICE.md", "CHANGELOG.md", "sbom.cdx.json",
    }  # fmt: skip
    assert needed <= names
    for folder in ("tests", "tools", "examples", "benchmarks"):
        for file in (ROOT / folder).rglob("*.py"):
            assert file.relative_to(ROOT).as_posix() in names


@pytest.mark.slow
def test_the_wheel_works_in_a_clean_environment_from_any_folder(built, tmp_path):
    """First with the packages that every installation has, then with everything."""
    environment, here = tmp_path / "venv", tmp_path / "elsewhere"
    here.mkdir()
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", environment], check=True)
    packages = Path(sysconfig.get_path("purelib", "venv", {"base": str(environment)}))
    (wheel,) = built.glob("*.whl")
    pip = [sys.executable, "-m", "pip", "--python", environment / "bin" / "python"]
    offline = ["--quiet", "--disable-pip-version-check", "--no-index", "--no-deps"]
    subprocess.run([*pip, "install", *offline, wheel], check=True)
    link(CORE, packages)

    def typed(*arguments: str, code: int = 0) -> str:
        own = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"} | {"COLUMNS": "200"}
        command = [environment / "bin" / "sellf", *arguments]
        done = subprocess.run(command, cwd=here, env=own, capture_output=True, text=True)
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout if code == 0 else done.stderr

    assert typed("--version") == f"sellf {sellf.__version__}\n"
    assert "paper-main" in typed("study", "list")
    assert "UNFAIR at tolerance 0.05" in typed("audit", "--example")
    lacking = "sellf: this needs jax, which is not installed: type `pip install 'sellf[train]'`.\n"
    for command in (["worlds"], ["train", "lending"], ["study", "run", "timing", "--quick"]):
        assert typed(*command, code=2).endswith(lacking)

    (packages / "everything.pth").write_text(sysconfig.get_path("purelib"))
    assert "Caucasian" in typed("worlds")
    out = here / "run"
    typed("train", "lending", "ppo", "--steps", "2048", "--quiet", "--out", str(out))
    figures = json.loads(typed("evaluate", str(out), "--deployments", "2", "--json"))
    assert figures["deployments"] == 2


def link(names, folder: Path, seen=None) -> None:
    """Put installed packages, and what they need themselves, into another environment."""
    seen = set() if seen is None else seen
    for name in set(names) - seen:
        seen.add(name)
        found = distribution(name)
        for part in {file.parts[0] for file in found.files or ()} - {"..", "__pycache__"}:
            if not (folder / part).exists():
                (folder / part).symlink_to(Path(str(found.locate_file(part))))
        wanted = [Requirement(text) for text in found.requires or ()]
        link([w.name for w in wanted if not w.marker or w.marker.evaluate()], folder, seen)
