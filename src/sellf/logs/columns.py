"""The roles of a log's columns, and the meaning of their values."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from sellf.errors import InputError
from sellf.logs.binary import AS_NUMBERS, Meant
from sellf.logs.names import short

FLAGS = (
    "group", "decision", "outcome", "propensity", "score", "features", "time", "person",
    "decided_on", "examiner", "weight", "within", "group_probability",
)  # fmt: skip
"""Options that name columns, each with a flag of its own on the command line."""


@dataclass(frozen=True)
class Columns:
    """Column names by role, as given by the user, and the meaning of their values."""

    group: tuple[str, ...]
    decision: str
    outcome: str | None
    propensity: str | None = None
    score: str | None = None
    features: tuple[str, ...] = ()
    time: str | None = None
    person: str | None = None
    """Column that identifies the applicant; None: every row is a different person."""
    decided_on: str | None = None
    """Column with the date of the decision; None: all outcomes have had time to appear."""
    decided: Meant = AS_NUMBERS
    """Values of the decision that mean accepted and rejected."""
    turned_out: Meant = AS_NUMBERS
    """Values of the outcome that mean good and bad."""
    score_range: tuple[float, float] = (0.0, 1.0)
    """The scale of the score: its lowest and its highest value."""
    score_is_risk: bool = False
    """Whether the score is the chance of a bad outcome."""
    trust_rejected_outcomes: bool = False
    hide_rejected_outcomes: bool = False
    """Whether outcomes that the log records for rejected people are ignored."""
    others: tuple[tuple[str, str], ...] = ()
    """Columns that are kept as they are, each with the option that named it."""

    def named(self) -> dict[str, str]:
        """Return the name of every column that is used, with the option that named it."""
        single = {
            "decision": self.decision,
            "outcome": self.outcome,
            "propensity": self.propensity,
            "score": self.score,
            "time": self.time,
            "decided_on": self.decided_on,
            "person": self.person,
        }
        used = {name: option for option, name in single.items() if name is not None}
        used |= dict.fromkeys(self.features, "feature")
        used = dict(self.others) | used
        return used | dict.fromkeys(self.group, "group")


def names_of(value: Any, option: str) -> tuple[str, ...]:
    """Return one or several column names as a tuple."""
    names = (value,) if isinstance(value, str) else value
    if not isinstance(names, Iterable):
        raise InputError(f"{option} is {value!r}: give a column's name, or a list of them.")
    names = tuple(names)
    for name in names:
        name_of(name, option)
    if len(set(names)) < len(names):
        raise InputError(f"{option} names a column twice, in {list(names)}: name each once.")
    return names


def name_of(value: Any, option: str) -> str:
    """Return one column name."""
    if not isinstance(value, str) or not value:
        raise InputError(f"{option} is {value!r}: give a column's name.")
    return value


def check_names(columns: Columns, present: Sequence[Any]) -> None:
    """Refuse columns that the log does not have, has twice, or that are used in two roles."""
    check_present(columns.named(), present)
    check_roles(columns, {})


def check_present(needed: Mapping[str, str], present: Sequence[Any]) -> None:
    """Refuse columns that the log does not have, or has twice.

    Args:
        needed: the names of columns, with the option that named each.
        present: the columns of the log.
    """
    if not present:
        raise InputError("the log has no columns: give a log with a header and rows.")
    seen: set[Any] = set()
    repeated = [name for name in present if name in seen or seen.add(name)]
    for name, option in needed.items():
        if name in repeated:
            raise InputError(
                f"the log has {list(present).count(name)} columns named {name!r}: rename all but "
                f"the one meant as {option}."
            )
        if name not in seen:
            raise InputError(_absent(name, option, [str(item) for item in present]))


def check_roles(columns: Columns, parts: Mapping[str, str]) -> None:
    """Refuse columns that are used in two roles.

    Args:
        columns: what the columns mean.
        parts: columns from which decisions and outcomes are derived, with the role of each.
    """
    kinds = [columns.decision, columns.outcome, columns.propensity, columns.time, columns.person]
    kinds += columns.group
    given = [name for name in kinds if name is not None]
    for name in given:
        if given.count(name) > 1:
            raise InputError(
                f"column {name!r} is used in two roles: group, decision, outcome, propensity, "
                "time and person must be different columns."
            )
    if columns.score is not None and columns.score in (columns.decision, columns.outcome):
        raise InputError(
            f"score is {columns.score!r}, the decision or the outcome itself: name a column of "
            "predictions that were made before the outcome was known, or leave score out."
        )
    leaks = {columns.decision: "decision", columns.outcome: "outcome", **parts}
    for name in columns.features:
        if name in leaks:
            raise InputError(f"feature {name!r} is the {leaks[name]} itself: leave it out.")


def _absent(name: str, option: str, present: list[str]) -> str:
    near = get_close_matches(name, present, n=1, cutoff=0.5)
    folded = [other for other in present if other.lower() == name.lower()]
    hint = f"did you mean {short((folded or near)[0])}? " if folded or near else ""
    shown = ", ".join(map(short, present[:12])) + (", ..." if len(present) > 12 else "")
    between = next((sign for sign in ",;\t|" if len(present) == 1 and sign in present[0]), None)
    if between is not None:
        hint = f"its values may be separated by another character; type --separator {between!r}. "
    flag = {"features": "feature"}.get(option, option).replace("_", "-")
    instead = "" if hint or option not in FLAGS else f" Type --{flag} with one of these."
    return f"the log has no column {short(name)} ({option}): {hint}It has {shown}.{instead}"
