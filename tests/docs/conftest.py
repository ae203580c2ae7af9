"""The tools that read pages are scripts: their folder has to be on the path."""

import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "tools"))


@pytest.fixture(autouse=True, scope="session")
def _registries_there():
    """Pages register things of their own; `_registries` restores what is loaded by then."""
    if find_spec("jax"):
        import_module("sellf.algorithms.catalogue")
        import_module("sellf.envs.worlds")
