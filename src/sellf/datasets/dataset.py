"""A fetched data set: its file, its provenance, and how to audit it."""

import importlib.util
import textwrap
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sellf.errors import InputError

READERS: dict[str, dict[str, Any]] = {
    "pandas": {"low_memory": False},
    "polars": {"infer_schema_length": None},
}
"""Packages that read a data set, each with the option to infer types from all rows."""


@dataclass(frozen=True)
class Dataset:
    """A public data set on this machine; `sellf.audit(data.path, **data.audit_settings)` audits it.

    `print(data)` shows where it comes from, under which licence, and how the file was checked.
    """

    name: str
    title: str
    path: Path
    """The file."""
    description: str
    question: str
    """The question that an audit with `audit_settings` answers, in words."""
    provenance: str
    """Who published it."""
    licence: str
    address: str
    """Where it was found: the address it was fetched from, or a local file."""
    checked: str
    """What the file was checked against."""
    audit_settings: dict[str, Any] = field(default_factory=dict)
    """The arguments of `sellf.audit`, without the log."""

    def to_frame(self, backend: str | None = None) -> Any:
        """Return the rows as a data frame of pandas or Polars, whichever is installed.

        Args:
            backend: "pandas" or "polars"; by default the first that is installed.
        """
        if backend is not None and backend not in READERS:
            raise InputError(f"backend is {backend!r}: give {' or '.join(map(repr, READERS))}.")
        choices = [backend] if backend else list(READERS)
        found = next((name for name in choices if importlib.util.find_spec(name)), None)
        if found is None:
            raise ImportError(
                f"to_frame needs {' or '.join(choices)}: type `pip install {choices[0]}`."
            )
        import narwhals as nw

        frame = nw.read_csv(str(self.path), backend=found, **READERS[found])  # pyright: ignore
        return nw.to_native(frame)

    def __str__(self) -> str:
        facts = {
            "file": str(self.path),
            "what": self.description,
            "question": self.question,
            "source": self.provenance,
            "found at": self.address,
            "checked": self.checked,
            "licence": self.licence,
            "audit": "sellf.audit(data.path, **data.audit_settings), with",
        }
        lines = [self.title]
        for name, text in facts.items():
            # A path or an address is one word, whatever its length.
            lines += textwrap.wrap(
                text,
                88,
                initial_indent=f"  {name:<10}",
                subsequent_indent=" " * 12,
                break_long_words=False,
                break_on_hyphens=False,
            )
        lines += [f"{'':12}{name}={value!r}" for name, value in self.audit_settings.items()]
        return "\n".join(lines)
