"""Which module imports which: no cycles, and no room imports from one that stands on it.

Imports within functions count. Those that only a type checker follows (`if TYPE_CHECKING`) count
for the order of rooms, not for cycles: nothing happens when they are read.
"""

import ast
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

SOURCE = Path(__file__).parent.parent / "src"
ROOMS = (
    "datasets",
    "fairness",
    "logs",
    "audit",
    "envs",
    "planning",
    "algorithms",
    "offline",
    "training",
    "studies",
    "report",
    "cli",
)
"""Each imports from those before it, and from the modules that are in no room."""
TOP = ("sellf", "sellf.__main__")


def modules() -> dict[str, Path]:
    found = {}
    for path in SOURCE.glob("sellf/**/*.py"):
        parts = path.relative_to(SOURCE).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def nodes(tree: ast.AST, typing: bool) -> Iterator[ast.AST]:
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test) and not typing:
            continue
        yield node
        yield from nodes(node, typing)


def imports(text: str, known: set[str], typing: bool) -> set[str]:
    """Return the modules that a source names: in imports, or as a text to import by name."""
    found: set[str] = set()
    for node in nodes(ast.parse(text), typing):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            full = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= {name if name in known else str(node.module) for name in full}
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            found |= {node.value} - {"sellf"}
    return found & known


def graph(typing: bool) -> dict[str, set[str]]:
    known = modules()
    texts = {name: path.read_text(encoding="utf-8") for name, path in known.items()}
    return {n: imports(text, set(known), typing) - {n} for n, text in texts.items()}


def floor(module: str) -> int:
    """Return how high a module stands: below all rooms, in one of them, or above."""
    if module in TOP:
        return len(ROOMS)
    part = module.split(".")[1]
    return ROOMS.index(part) if part in ROOMS else -1


def test_no_module_imports_itself_by_any_way_lazy_imports_counted():
    try:
        TopologicalSorter(graph(typing=False)).prepare()
    except CycleError as error:
        pytest.fail(f"imports in a circle: {' -> '.join(error.args[1])}")


def test_a_room_imports_only_from_rooms_before_it():
    upwards = [
        f"{one} imports {other}"
        for one, others in graph(typing=True).items()
        for other in others
        if floor(other) > floor(one)
    ]
    assert upwards == []


def test_nothing_imports_the_package_itself():
    direct = graph(typing=True)
    assert [name for name in direct if "sellf" in direct[name] and name not in TOP] == []


def test_the_test_sees_lazy_imports_and_imports_by_name():
    known = {"sellf", "sellf.errors", "sellf.files", "sellf.text"}
    text = (
        "from sellf import errors\ndef f():\n    import sellf.files\nX = 'sellf.text'\n"
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from sellf import y\n"
    )
    assert imports(text, known, typing=False) == known - {"sellf"}
    assert imports(text, known, typing=True) == known
