"""Results that can be printed and converted to data frames."""

import importlib.util
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

from sellf.text import plain

MOST_ROWS = 50
"""Number of rows shown in a notebook; `to_frame` returns all of them."""


class Table(ABC):
    """A tabular result; subclasses define its title and its columns."""

    @abstractmethod
    def _title(self) -> str:
        """Return a summary of the result in one line."""

    @abstractmethod
    def _table(self) -> dict[str, list[Any]]:
        """Return the columns, which have equal lengths."""

    def _printed(self) -> dict[str, list[Any]]:
        """Return the columns as they are printed."""
        return self._table()

    def to_frame(self, backend: str | None = None) -> Any:
        """Return the rows as a data frame of pandas, Polars or PyArrow.

        Args:
            backend: "pandas", "polars" or "pyarrow"; by default the first that is installed.
        """
        choices = [backend] if backend else ["pandas", "polars", "pyarrow"]
        found = next((name for name in choices if importlib.util.find_spec(name)), None)
        if found is None:
            raise ImportError(
                f"to_frame needs {' or '.join(choices)}: type `pip install {choices[0]}`."
            )
        import narwhals as nw

        return nw.to_native(nw.from_dict(self._table(), backend=found))  # pyright: ignore

    def __str__(self) -> str:
        columns = self._printed()
        cells = [[name, *map(_cell, values)] for name, values in columns.items()]
        names, *figures = [
            [cell.rjust(max(map(len, column))) for cell in column] if place else column
            for place, column in enumerate(cells)
        ]
        width = max(map(len, names))
        lines = [
            "  ".join([name.ljust(width), *row]) for name, *row in zip(names, *figures, strict=True)
        ]
        return "\n".join([self._title(), *lines])

    def _repr_html_(self) -> str:
        """Return the result as HTML for notebooks: its title and its first rows, with escaping."""
        from html import escape

        columns = self._table()
        rows = list(zip(*columns.values(), strict=True))
        head = "".join(f'<th scope="col">{escape(str(name))}</th>' for name in columns)
        body = "".join(
            "<tr>" + "".join(f"<td>{escape(_cell(value))}</td>" for value in row) + "</tr>"
            for row in rows[:MOST_ROWS]
        )
        left = len(rows) - MOST_ROWS
        more = f"<p>{left:,} more rows: see <code>to_frame()</code>.</p>" if left > 0 else ""
        return (
            f"<p><strong>{escape(self._title())}</strong></p>"
            f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{more}"
        )


def as_pandas(columns: Mapping[str, Any]) -> Any | None:
    """Return columns as a pandas data frame, for classifiers; None if pandas is not installed."""
    if importlib.util.find_spec("pandas") is None:
        return None
    import narwhals as nw

    return nw.to_native(nw.from_dict(dict(columns), backend="pandas"))


def _cell(value: Any) -> str:
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    if isinstance(value, float):
        if value != value:
            return "undefined"
        return f"{value:,.0f}" if value.is_integer() and abs(value) > 1 else f"{value:.4f}"
    return "" if value is None else plain(value, keep="")
