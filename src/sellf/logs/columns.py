"""Which columns of a log mean what, and how to read their values."""

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
    """The names that the user gave, and what the values in them mean."""

    group: tuple[str, ...]
    decision: str
    outcome: str | None
    propensity: str | None = None
    score: str | None = None
    features: tuple[str, ...] = ()
    time: str | None = None
    person: str | None = None
    """Who applied; None: every row is a person of its own."""
    decided_on: str | None = None
    """When the decision was made; None: every decision had time to show its outcome."""
    decided: Meant = AS_NUMBERS
    """The decisions that mean accepted and rejected."""
    turned_out: Meant = AS_NUMBERS
    """The outcomes that are good and bad."""
    score_range: tuple[float, float] = (0.0, 1.0)
    """The scale of the score: its worst and its best value."""
    score_is_risk: bool = False
    """Whether the score is the chance of a bad outcome."""
    trust_rejected_outcomes: bool = False
    hide_rejected_outcomes: bool = False
    """Whether what the log holds as the outcome of the rejected is left out."""
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
    """Refuse names that the log does not have, has twice, or that mean two things at once."""
    check_present(columns.named(), present)
    check_roles(columns, {})


def check_present(needed: Mapping[str, str], present: Sequence[Any]) -> None:
    """Refuse names that the log does not have, or has twice.

    Args:
        needed: the names, with the option that named each.
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
    """Refuse columns that mean two things at once.

    Args:
        columns: what the columns mean.
        parts: columns that decisions and outcomes are made of, with what each is.
    """
    kinds = [columns.decision, columns.outcome, columns.propensity, columns.time, columns.person]
    kinds += columns.group
    given = [name for name in kinds if name is not None]
    for name in given:
        if given.count(name) > 1:
            raise InputError(
                f"column {name!r} is named for two things: group, decision, outcome, propensity, "
                "time and person are columns of their own."
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
        hint = f"its values may be separated by something else, type --separator {between!r}. "
    flag = {"features": "feature"}.get(option, option).replace("_", "-")
    instead = "" if hint or option not in FLAGS else f" Type --{flag} with one of these."
    return f"the log has no column {short(name)} ({option}): {hint}It has {shown}.{instead}"
