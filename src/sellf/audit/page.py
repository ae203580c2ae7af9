"""An audit as one self-contained HTML page: the answer, the picture, the numbers, the rest."""

import base64
import io
from html import escape
from typing import TYPE_CHECKING, Any

from sellf import __version__

if TYPE_CHECKING:
    from sellf.audit.result import Audit, Audits

STYLE = """
:root { color-scheme: light dark; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 52rem; margin: 2rem auto; padding: 0 1rem; }
h1, h2 { line-height: 1.25; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td { padding: .3rem .6rem; border-bottom: 1px solid #8886; text-align: right; }
th:first-child, td:first-child { text-align: left; }
img { max-width: 100%; height: auto; background: #fff; padding: .5rem; }
.wide { overflow-x: auto; }
pre { overflow-x: auto; }
footer { margin-top: 3rem; font-size: .85rem; opacity: .7; }
"""


def page(result: "Audit | Audits") -> str:
    """Return the whole page; every name in it is escaped, and it loads nothing."""
    from sellf.audit.result import Audits

    several = isinstance(result, Audits)
    audits = list(result.by_notion.values()) if several else [result]
    heading = "Audit of a decision log"
    body = [f"<h1>{heading}</h1>"]
    if several:
        body += [f"<p>{escape(result._title())}.</p>", _table(result._table())]
    body += [part for audit in audits for part in _section(audit)]
    body.append(f"<footer>Made by sellf {escape(__version__)}.</footer>")
    return (
        f'<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{heading}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n"
        + "\n".join(body)
        + "\n</body>\n</html>\n"
    )


def _section(audit: "Audit") -> list[str]:
    title, _, *blocks = str(audit).split("\n\n")
    return [
        f"<h2>{escape(title[:1].upper() + title[1:])}</h2>",
        _picture(audit),
        _table(audit._table()),
        *map(_block, blocks),
    ]


def _block(text: str) -> str:
    """Return a paragraph, a list under its heading, or columns as they were printed."""
    first, *rest = text.split("\n")
    if rest and all(line.startswith("- ") for line in rest):
        items = "".join(f"<li>{escape(line[2:])}</li>" for line in rest)
        return f"<h3>{escape(first.rstrip(':'))}</h3>\n<ul>{items}</ul>"
    if first.startswith("period "):
        return f"<pre>{escape(text)}</pre>"
    return "".join(f"<p>{escape(line)}</p>" for line in (first, *rest))


def _table(columns: dict[str, list[Any]]) -> str:
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in columns)
    rows = "".join(
        "<tr>" + "".join(f"<td>{escape(_cell(value))}</td>" for value in row) + "</tr>"
        for row in zip(*columns.values(), strict=True)
    )
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"
    return f'<div class="wide" tabindex="0">{table}</div>'


def _cell(value: Any) -> str:
    return f"{value:.3f}" if isinstance(value, float) else str(value)


def _picture(audit: "Audit") -> str:
    """Return the intervals as an image that cannot run anything, with its meaning in words."""
    file = io.BytesIO()
    audit.plot().savefig(file, format="svg")
    data = base64.b64encode(file.getvalue()).decode()
    figures = audit._table()
    words = "; ".join(
        f"{name}: {low:.3f} to {high:.3f}"
        for name, low, high in list(
            zip(*(figures[key] for key in ("group", "low", "high")), strict=True)
        )[:20]
    )
    alternative = escape(f"Intervals of {audit.notion} by group. {words}", quote=True)
    return f'<img alt="{alternative}" src="data:image/svg+xml;base64,{data}">'
