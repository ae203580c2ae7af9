"""Reports: one self-contained HTML file for an audit, runs, or a study."""

from importlib.util import find_spec
from typing import TYPE_CHECKING

from sellf.errors import InputError

if TYPE_CHECKING:
    from sellf.audit.result import Audit, Audits


def check() -> None:
    """Refuse to begin what cannot be finished: a report needs Jinja2."""
    if find_spec("jinja2") is None:
        raise InputError("a report needs Jinja2: type `pip install 'sellf[report]'`.")


def audit(result: "Audit | Audits") -> str:
    """Return the report of an audit of one or several notions, as one HTML file."""
    from sellf.report.audits import report

    return report(result)


__all__ = ["audit"]
