"""`sellf doctor`: what is installed here, what it enables, and what is broken."""

import json
import os
import platform
import sys
import tempfile
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from sellf._version import __version__
from sellf.errors import InputError
from sellf.extras import EXTRAS, browser, install
from sellf.fairness.registry import Registry

CORE = ("narwhals", "numpy", "rich", "scipy", "tyro")


def act(as_json: bool) -> int:
    """Print the diagnosis; return 1 if something is broken."""
    found = examine()
    if as_json:
        print(json.dumps(found, indent=2))
    else:
        _show(found)
    return 1 if found["problems"] else 0


def examine() -> dict[str, Any]:
    """Return the diagnosis as JSON values; `problems` lists what is broken and what to do."""
    problems: list[str] = []
    training = _training(problems)
    return {
        "sellf": __version__,
        "folder": str(Path(__file__).parent.parent),
        "python": platform.python_version(),
        "executable": sys.executable,
        "system": platform.platform(),
        "cores": cores(),
        "packages": {name: _version(name) for name in CORE},
        "extras": {
            name: {
                "enables": extra.enables,
                "packages": {
                    package: None if package in extra.missing else _version(package)
                    for package in extra.modules
                },
                "install": install(name) if extra.missing else None,
            }
            for name, extra in EXTRAS.items()
        },
        **training,
        "store": _store(problems),
        "plugins": _plugins(problems, bool(training["devices"])),
        "browser": browser(),
        "problems": problems,
    }


def cores() -> int:
    """Return how many cores this process may use, which may be fewer than the machine has."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _training(problems: list[str]) -> dict[str, Any]:
    """Return JAX's devices and the cache of compiled programs, if training is installed."""
    nothing = {"devices": [], "cache": None}
    if EXTRAS["train"].missing:
        return nothing
    try:
        import_module("sellf.training.loop")
        from jax import devices

        from sellf.compiling import cache_folder

        listed = [f"{device.platform} {device.id}: {device.device_kind}" for device in devices()]
    except Exception as error:  # whatever a broken installation throws
        problems.append(
            f"training cannot start ({type(error).__name__}: {error}): type "
            f"`pip install --force-reinstall 'sellf[train]'`; if JAX_PLATFORMS or XLA_FLAGS is "
            "set, try without it."
        )
        return nothing
    return {"devices": listed, "cache": _cache(cache_folder(), problems)}


def _cache(folder: str | None, problems: list[str]) -> dict[str, Any] | None:
    if folder is None:
        return None
    if "://" in folder:
        return {"folder": folder, "programs": None, "bytes": None}
    path = Path(folder)
    try:
        # The folder may not exist yet: then the nearest existing parent has to be writable.
        there = next(place for place in (path, *path.absolute().parents) if place.exists())
        with tempfile.TemporaryFile(dir=there):
            pass
    except OSError as error:
        problems.append(
            f"compiled programs cannot be stored in {folder} ({error.strerror}), so every start "
            "compiles them again: name a writable folder, `export SELLF_CACHE=FOLDER`."
        )
    files = [file for file in path.rglob("*") if file.is_file()] if path.is_dir() else []
    programs = [file for file in files if not file.name.endswith("-atime")]
    size = sum(file.stat().st_size for file in files)
    return {"folder": folder, "programs": len(programs), "bytes": size}


def _plugins(problems: list[str], can_load: bool) -> dict[str, dict[str, str]]:
    """Return the plug-ins of installed packages; add those that cannot be loaded to `problems`."""
    from sellf.fairness.notions import TABLE

    registries: list[Registry[Any]] = [TABLE]
    if can_load:
        from sellf.algorithms.catalogue import ALGORITHMS
        from sellf.envs.worlds import WORLDS

        registries += [ALGORITHMS, WORLDS]
    found = {}
    for registry in registries:
        points = registry.installed()
        found[f"{registry.kind}s"] = {name: point.value for name, point in points.items()}
        for name in points:
            try:
                registry.find(name)
            except InputError as error:
                problems.append(f"a plug-in is broken: {error.typed}")
    return found


def _store(problems: list[str]) -> dict[str, Any] | None:
    """Return a summary of the store of studies; None if there is none where `sellf study` looks."""
    from sellf.studies.store import open_store

    try:
        store = open_store(write=False)
    except InputError as error:
        problems.append(f"the store of studies cannot be used: {error.typed}")
        return None
    mark = store.folder / "store.json"
    if not mark.is_file():
        return None
    made = json.loads(mark.read_text(encoding="utf-8"))
    return {
        "folder": str(store.folder),
        "runs": len(store.done()),
        "failed": len(store.failed()),
        "made_with": {name: made[name] for name in ("sellf", "jax")},
    }


def _show(found: dict[str, Any]) -> None:
    console = Console(highlight=False)
    console.print(_facts(found))
    extras = Table(title="Extras", title_justify="left", title_style="bold", box=None)
    extras.add_column("name", no_wrap=True)
    extras.add_column("enables")
    # As wide as the longest command, so that it can be copied in one piece.
    extras.add_column("installed, or what to type", min_width=max(map(len, map(install, EXTRAS))))
    for name, extra in found["extras"].items():
        here = ", ".join(f"{p} {v}" for p, v in extra["packages"].items() if v is not None)
        extras.add_row(f"[bold]{name}[/bold]", extra["enables"], escape(extra["install"] or here))
    console.print()
    console.print(extras)
    console.print()
    for problem in found["problems"]:
        console.print(f"broken: {problem}", style="red", markup=False)
    if not found["problems"]:
        console.print("Nothing is broken.")


def _facts(found: dict[str, Any]) -> Table:
    packages, cache, store = found["packages"], found["cache"], found["store"]
    table = Table(show_header=False, box=None)
    facts = {
        "sellf": f"{found['sellf']}, in {found['folder']}",
        "Python": f"{found['python']}, {found['executable']}",
        "system": f"{found['system']}, {found['cores']} cores available",
        "packages": ", ".join(f"{name} {packages[name]}" for name in packages),
        "devices": ", ".join(found["devices"]) or "none: training is not installed, or broken",
        "cache": "no compiled programs are stored" if cache is None else _kept(cache),
        "store": "no store of studies here" if store is None else _runs(store),
        "plug-ins": ", ".join(name for kind in found["plugins"].values() for name in kind)
        or "none installed",
        "browser": found["browser"] or "none: tests of reports in a browser are skipped",
    }
    for name, value in facts.items():
        table.add_row(f"[bold]{name}[/bold]", escape(value))
    return table


def _kept(cache: dict[str, Any]) -> str:
    if cache["programs"] is None:
        return cache["folder"]
    size = f"{cache['programs']} compiled programs, {cache['bytes'] / 1e6:.1f} MB"
    return f"{cache['folder']}: {size}; may be removed at any time"


def _runs(store: dict[str, Any]) -> str:
    made = store["made_with"]
    return (
        f"{store['folder']}: {store['runs']} runs, {store['failed']} failed, made with sellf "
        f"{made['sellf']} and JAX {made['jax']}"
    )
