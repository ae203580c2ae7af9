"""The optional dependencies (extras), and what each enables."""

import shutil
from dataclasses import dataclass
from importlib.util import find_spec

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome",
            "microsoft-edge", "msedge")  # fmt: skip
"""Browsers that can print a page from the command line."""


@dataclass(frozen=True)
class Extra:
    """The packages that `pip install 'sellf[NAME]'` adds."""

    enables: str
    modules: dict[str, str]
    """The module to import, by the name of its package."""

    @property
    def missing(self) -> list[str]:
        """The packages that are not installed."""
        return [name for name, module in self.modules.items() if find_spec(module) is None]


EXTRAS = {
    "audit": Extra(
        "audits of files, and of logs without propensities",
        {
            "duckdb": "duckdb",
            "openpyxl": "openpyxl",
            "pyarrow": "pyarrow",
            "scikit-learn": "sklearn",
            "threadpoolctl": "threadpoolctl",
        },
    ),
    "train": Extra(
        "worlds, training, evaluation and studies",
        {
            "equinox": "equinox",
            "gymnasium": "gymnasium",
            "jax": "jax",
            "jaxtyping": "jaxtyping",
            "safetensors": "safetensors",
        },
    ),
    "report": Extra(
        "reports and pictures: report, --html, plot(), study figures",
        {"jinja2": "jinja2", "markupsafe": "markupsafe", "matplotlib": "matplotlib"},
    ),
    "ray": Extra("studies on a cluster: --engine ray", {"ray": "ray"}),
    "tensorboard": Extra("training logs: --log tensorboard", {"tensorboardx": "tensorboardX"}),
    "wandb": Extra("training logs: --log wandb", {"wandb": "wandb"}),
    "mlflow": Extra(
        "training logs: --log mlflow",
        {"mlflow-skinny": "mlflow", "alembic": "alembic", "sqlalchemy": "sqlalchemy"},
    ),
}


def install(extra: str) -> str:
    """Return the command that installs an extra."""
    return f"pip install 'sellf[{extra}]'"


def what_to_type(error: ImportError) -> str | None:
    """Return the message for an import that failed because an extra is not installed."""
    for name, extra in EXTRAS.items():
        for package in extra.missing:
            if error.name is not None and error.name.split(".")[0] == extra.modules[package]:
                return f"this needs {package}, which is not installed: type `{install(name)}`."
    # Messages of the library itself already say what to type.
    return str(error) if error.name is None and "`pip install" in str(error) else None


def browser() -> str | None:
    """Return the path of a browser that can print; None if none is installed."""
    return next(filter(None, map(shutil.which, BROWSERS)), None)
