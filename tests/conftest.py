"""Every test runs with JAX's strictest rules: no silent change of dtype or rank."""

import os

import pytest
from hypothesis import HealthCheck, settings

os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ["JAX_NUMPY_DTYPE_PROMOTION"] = "strict"
os.environ["JAX_NUMPY_RANK_PROMOTION"] = "raise"

# Examples are drawn from a fixed seed, so that a run that passed passes again.
settings.register_profile(
    "sellf", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("sellf")


@pytest.fixture(scope="session")
def jax():
    return pytest.importorskip("jax")
