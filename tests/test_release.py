"""What a release says of itself: one version everywhere, and the licences of what it contains."""

import hashlib
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

import sellf
from sellf._version import SAME_NUMBERS

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "src" / "sellf"
REQUIRED = {"cff-version", "message", "title", "authors"}
"""By the Citation File Format 1.2.0, https://github.com/citation-file-format."""
ALLOWED = REQUIRED | {
    "abstract", "commit", "contact", "date-released", "doi", "identifiers", "keywords", "license",
    "license-url", "preferred-citation", "references", "repository", "repository-artifact",
    "repository-code", "type", "url", "version",
}  # fmt: skip
NAMES = {"name", "given-names", "family-names", "name-particle", "affiliation", "orcid", "email"}


@pytest.fixture(scope="module")
def citation() -> dict:
    return yaml.load((ROOT / "CITATION.cff").read_text(encoding="utf-8"), yaml.BaseLoader)


@pytest.fixture(scope="module")
def bill() -> dict:
    return json.loads((ROOT / "sbom.cdx.json").read_text(encoding="utf-8"))


def test_the_version_is_the_same_everywhere(citation, bill):
    newest = re.search(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.M)
    assert newest is not None
    found = {newest[1], citation["version"], bill["metadata"]["component"]["version"]}
    assert found == {sellf.__version__}
    assert SAME_NUMBERS[-1] == sellf.__version__


def test_the_citation_follows_its_format(citation):
    assert set(citation) >= REQUIRED
    assert set(citation) <= ALLOWED
    assert citation["cff-version"] == "1.2.0"
    assert citation["type"] in ("software", "dataset")
    assert re.fullmatch(r"\d{4}-\d{2}-\d{2}", citation["date-released"])
    paper = citation["preferred-citation"]
    assert set(paper) >= {"type", "title", "authors"}
    for author in (*citation["authors"], *paper["authors"]):
        assert set(author) <= NAMES
        assert "name" in author or "family-names" in author
    assert 2020 < int(paper["year"]) < 2100


def test_the_bill_of_materials_lists_what_is_locked(bill):
    """Against a reading of the lock that shares nothing with the tool's."""
    lock = (ROOT / "locks" / "run.txt").read_text(encoding="utf-8").splitlines()
    pins = {line.split()[0] for line in lock if "==" in line and not line.startswith(" ")}
    packages = [one for one in bill["components"] if one["purl"].startswith("pkg:pypi/")]
    assert {f"{one['name']}=={one['version']}" for one in packages} == pins
    hashes = [
        one["content"]
        for package in packages
        for reference in package["externalReferences"]
        for one in reference["hashes"]
    ]
    locked = [line.strip().removeprefix("--hash=sha256:").rstrip(" \\") for line in lock
              if "--hash" in line]  # fmt: skip
    assert sorted(hashes) == sorted(locked)
    licensed = [one for one in packages if one["licenses"]]
    assert len(licensed) >= 0.9 * len(packages)


def test_the_bill_of_materials_is_up_to_date():
    tool = [sys.executable, str(ROOT / "tools" / "sbom.py"), "--check"]
    done = subprocess.run(tool, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


def test_what_is_bundled_is_named_with_its_licence_and_is_what_it_is_said_to_be(bill):
    notice = (ROOT / "NOTICE.md").read_text(encoding="utf-8")
    for file in (*(PACKAGE / "envs" / "data").iterdir(), PACKAGE / "report/assets/echarts.min.js"):
        assert file.name in notice
    charts = (PACKAGE / "report/assets/echarts.min.js").read_bytes()
    digest = hashlib.sha256(charts).hexdigest()
    assert digest in (PACKAGE / "report/assets/README.md").read_text(encoding="utf-8")
    (bundled,) = (one for one in bill["components"] if one["name"] == "echarts")
    assert bundled["hashes"] == [{"alg": "SHA-256", "content": digest}]
    assert f"Apache ECharts {bundled['version']}" in notice
