"""The software bill of materials: what an installation of sellf consists of, as CycloneDX JSON.

    python tools/sbom.py           write sbom.cdx.json
    python tools/sbom.py --check   say whether it is up to date, with exit code 1 if it is not

Packages, versions and hashes are those of locks/run.txt. A licence is what the installed package
says of itself; of a version that is not installed here, the licence in the present file is kept.
"""

import argparse
import hashlib
import json
import re
import sys
import uuid
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, metadata
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
LOCK, BILL = ROOT / "locks" / "run.txt", ROOT / "sbom.cdx.json"
CHARTS = ROOT / "src" / "sellf" / "report" / "assets" / "echarts.min.js"
VERSION = re.search(r'__version__ = "(.+)"', (ROOT / "src/sellf/_version.py").read_text())
CLASSIFIED = {
    "Apache Software License": "Apache-2.0",
    "MIT License": "MIT",
    "Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
}
"""SPDX identifiers of classifiers that mean one licence; "BSD License" may be one of several."""
IDENTIFIERS = {*CLASSIFIED.values(), "BSD-2-Clause", "BSD-3-Clause", "PSF-2.0"}
LONGEST = 60
"""Letters of a licence's name; some packages put the whole text there."""


def locked(text: str) -> Iterator[tuple[str, str, str, list[str]]]:
    """Return name, version, marker and hashes of every package in a lock."""
    for entry in re.split(r"\n(?=\S)", text.replace("\\\n", " ")):
        found = re.match(r"(\S+)==(\S+)\s*(?:;\s*(.*?))?\s+--hash", entry)
        if found:
            name, version, marker = found.groups()
            yield name, version, marker or "", re.findall(r"--hash=sha256:(\w+)", entry)


def licence(name: str, version: str) -> list[dict[str, Any]] | None:
    """Return the licence that an installed package names; None if this version is not installed."""
    try:
        about = metadata(name)
    except PackageNotFoundError:
        return None
    if about["Version"] != version:
        return None
    if "License-Expression" in about:
        return [{"expression": about["License-Expression"]}]
    classified = [
        CLASSIFIED.get(line.split(" :: ")[-1], line.split(" :: ")[-1])
        for line in about.get_all("Classifier", ())
        if line.startswith("License :: ")
    ]
    own = about["License"].strip() if "License" in about else ""
    named = [own] if own and "\n" not in own and len(own) <= LONGEST else []
    best = named if own in IDENTIFIERS else classified or named
    return [{"license": {"id" if one in IDENTIFIERS else "name": one}} for one in best]


def component(
    name: str, version: str, marker: str, hashes: list[str], before: list[dict[str, Any]]
) -> dict[str, Any]:
    """Return a package as CycloneDX has it; the hashes are of the files that pip accepts."""
    found = licence(name, version)
    properties = [{"name": "sellf:marker", "value": marker}] if marker else []
    return {
        "type": "library",
        "bom-ref": f"pkg:pypi/{name}@{version}",
        "name": name,
        "version": version,
        "purl": f"pkg:pypi/{name}@{version}",
        "licenses": before if found is None else found,  # none if it names none
        "externalReferences": [
            {
                "type": "distribution",
                "url": f"https://pypi.org/project/{name}/{version}/",
                "hashes": [{"alg": "SHA-256", "content": one} for one in sorted(hashes)],
            }
        ],
        **({"properties": properties} if properties else {}),
    }


def bundled() -> dict[str, Any]:
    """Return the chart library that reports carry."""
    version = re.search(r'\.version="(\d[\d.]+)"', CHARTS.read_text(encoding="utf-8")[-1000:])
    assert version is not None
    purl = f"pkg:npm/echarts@{version[1]}"
    return {
        "type": "library",
        "bom-ref": purl,
        "name": "echarts",
        "version": version[1],
        "description": "in src/sellf/report/assets, as npm has it",
        "purl": purl,
        "licenses": [{"license": {"id": "Apache-2.0"}}],
        "hashes": [{"alg": "SHA-256", "content": hashlib.sha256(CHARTS.read_bytes()).hexdigest()}],
    }


def bill(lock: str, before: dict[str, Any]) -> dict[str, Any]:
    """Return the bill of materials of a lock.

    Args:
        lock: the text of the lock.
        before: the present bill, whose licences are kept where a package is not installed.
    """
    assert VERSION is not None
    known = {one["bom-ref"]: one.get("licenses", []) for one in before.get("components", ())}
    components = [
        component(name, version, marker, hashes, known.get(f"pkg:pypi/{name}@{version}", []))
        for name, version, marker, hashes in locked(lock)
    ]
    product = {
        "type": "application",
        "bom-ref": f"pkg:pypi/sellf@{VERSION[1]}",
        "name": "sellf",
        "version": VERSION[1],
        "purl": f"pkg:pypi/sellf@{VERSION[1]}",
        "licenses": [{"license": {"id": "MIT"}}],
    }
    content = {"metadata": {"component": product}, "components": [bundled(), *components]}
    digest = hashlib.sha256(json.dumps(without_licences(content)).encode()).hexdigest()
    return {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        # The same content has the same number, so that the file changes only if that does.
        "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, digest)}",
        "version": 1,
        **content,
    }


def without_licences(content: Any) -> Any:
    """Return all of a bill that does not depend on what is installed here."""
    if isinstance(content, dict):
        return {k: without_licences(v) for k, v in content.items() if k != "licenses"}
    return [without_licences(v) for v in content] if isinstance(content, list) else content


def main() -> int:
    """Write the bill, or say whether it is up to date."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--check", action="store_true", help="write nothing")
    check = parser.parse_args().check
    before = json.loads(BILL.read_text(encoding="utf-8")) if BILL.exists() else {}
    found = bill(LOCK.read_text(encoding="utf-8"), before)
    if check:
        same = without_licences(found) == without_licences(before)
        print(f"{BILL.name} is {'up to date' if same else 'old: run python tools/sbom.py'}.")
        return 0 if same else 1
    # One line a hash: a change of versions can be read in a diff.
    text = re.sub(r'\{\s+"alg": ("[^"]+"),\s+"content": ("[^"]+")\s+\}',
                  r'{"alg": \1, "content": \2}', json.dumps(found, indent=1))  # fmt: skip
    BILL.write_text(text + "\n", encoding="utf-8")
    print(f"{BILL.name}: {len(found['components'])} components")
    return 0


if __name__ == "__main__":
    sys.exit(main())
