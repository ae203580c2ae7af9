"""The configuration of a log: the same on the command line, in Python and in a file.

`Reading` specifies how the file is read and which rows are used; `Columns` specifies what its
columns mean. Together they form a `LogConfig`, which is all that `reading.open_log` needs. Audits
and all other commands that read a log share it.
"""

import codecs
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from sellf.errors import InputError
from sellf.logs.binary import Meant, values_of
from sellf.logs.columns import Columns, name_of, names_of


@dataclass(frozen=True)
class Reading:
    """How a log is read, and which of its rows are used."""

    where: str | None = None
    """Condition on the rows that are used; see `condition`."""
    groups: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """The groups that are used, with the names that the log has for each; empty: all."""
    other: str | None = None
    """Name for all other groups combined; None: their rows are left out."""
    missing_value: tuple[str, ...] = ()
    """Words and numbers that mean that a value is missing."""
    date_format: str | None = None
    """How dates are written, e.g. DD/MM/YYYY; None: the file's own date type."""
    bands: dict[str, tuple[float, ...]] = field(default_factory=dict)
    """Cut points of numeric columns that are used as groups."""
    encoding: str | None = None
    """Encoding of a CSV file; None: UTF-8, or UTF-16 if it has a byte order mark."""
    separator: str | None = None
    quote: str | None = None
    decimal: str | None = None
    sheet: str | None = None
    """Sheet of a workbook; None: the first."""
    table: str | None = None
    """Table of a database."""
    query: str | None = None
    """Query on a database."""

    def check(self) -> None:
        """Refuse invalid or contradictory settings."""
        if self.where is not None:
            from sellf.logs.condition import parse  # here, since importing sellf needs NumPy only

            parse(self.where)
        if self.other is not None and not self.groups:
            raise InputError(
                "--other puts together all groups that are not named: name those to keep apart "
                "with --groups, for example --groups Black,White --other others."
            )
        if self.other in self.groups:
            raise InputError(f"--other is {self.other!r}, one of --groups: give another name.")
        if self.table is not None and self.query is not None:
            raise InputError("--table and --query both say what to read: give one of them.")
        for name in ("separator", "quote", "decimal"):
            letter = getattr(self, name)
            if letter is not None and (len(letter) != 1 or letter in "\r\n\0"):
                raise InputError(
                    f"--{name} is {letter!r}: give one character, for example {_EXAMPLE[name]}."
                )
        if self.encoding is not None:
            try:
                text = codecs.lookup(self.encoding)
                "a".encode(text.name)
            except (LookupError, TypeError):
                raise InputError(
                    f"--encoding is {self.encoding!r}, which is not an encoding: type utf-8, "
                    "cp1252 (Windows), latin-1, utf-16 or mac-roman."
                ) from None


_EXAMPLE = {"separator": "';'", "quote": '"\'"', "decimal": "','"}
OF_COLUMNS = ("group", "decision", "outcome", "propensity", "score", "features", "time", "person",
              "decided_on", "accepted_value", "rejected_value", "positive_value", "negative_value",
              "score_range", "score_is_risk", "trust_rejected_outcomes",
              "hide_rejected_outcomes")  # fmt: skip
"""Options that specify what columns mean."""
OF_READING = tuple(one.name for one in fields(Reading))
"""Options that specify how the log is read."""


@dataclass(frozen=True)
class LogConfig:
    """What a log's columns mean and how it is read."""

    columns: Columns
    reading: Reading = field(default_factory=Reading)

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> "LogConfig":
        """Return the configuration given by options; options of other kinds are ignored.

        Args:
            options: options by name, as for `sellf.audit`.
        """
        return cls(columns_of(options), reading_of(options))


def columns_of(options: Mapping[str, Any]) -> Columns:
    """Return what columns mean according to options."""
    single: dict[str, Any] = {
        name: None if options.get(name) is None else name_of(options[name], name)
        for name in ("outcome", "propensity", "score", "time", "person", "decided_on")
    }
    group = names_of(options["group"], "group")
    if not group and options.get("group_probability") is None:
        raise InputError("group is empty: name the column that holds each person's group.")
    flags = ("score_is_risk", "trust_rejected_outcomes", "hide_rejected_outcomes")
    given = {name: bool(options.get(name)) for name in flags}
    if given["trust_rejected_outcomes"] and given["hide_rejected_outcomes"]:
        raise InputError(
            "--trust-rejected-outcomes and --hide-rejected-outcomes contradict each other: type "
            "the one that says what the outcomes of the rejected are."
        )
    return Columns(
        group=group,
        decision=name_of(options["decision"], "decision"),
        features=names_of(options.get("features", ()), "features"),
        decided=Meant(
            values_of(options.get("accepted_value")), values_of(options.get("rejected_value"))
        ),
        turned_out=Meant(
            values_of(options.get("positive_value")), values_of(options.get("negative_value"))
        ),
        score_range=_score_range(options.get("score_range"), single["score"]),
        **given,
        **single,
    )


def reading_of(options: Mapping[str, Any]) -> Reading:
    """Return how a log is read according to options."""
    given = {name: options[name] for name in OF_READING if options.get(name) is not None}
    words = values_of(given.get("missing_value"))
    made = {
        **given,
        "groups": _groups(given.get("groups")),
        "bands": _bands(given.get("bands")),
        "missing_value": tuple(str(word).strip() for word in words),
    }
    for name, value in made.items():
        if name not in ("groups", "bands", "missing_value") and not isinstance(value, str):
            raise InputError(f"{name} is {value!r}: give a string.")
    reading = Reading(**made)
    reading.check()
    return reading


def _groups(given: Any) -> dict[str, tuple[str, ...]]:
    """Return the groups to use and the log's names for them: Black=B,Hispanic=P+Q, or a mapping."""
    if given is None:
        return {}
    if isinstance(given, Mapping):
        return {str(name): tuple(map(str, values_of(value))) for name, value in given.items()}
    parts = given.split(",") if isinstance(given, str) else values_of(given)
    found: dict[str, tuple[str, ...]] = {}
    for part in parts:
        name, is_named, own = str(part).partition("=")
        names = tuple(word.strip() for word in own.split("+")) if is_named else (name.strip(),)
        if not name.strip() or not all(names) or name.strip() in found:
            raise InputError(
                f"--groups is {given!r}: name groups once each, with commas between them, for "
                "example Black,White, or with names of your own, Black=B,Hispanic=P+Q."
            )
        found[name.strip()] = names
    twice = [name for names in found.values() for name in names]
    repeated = next((name for name in twice if twice.count(name) > 1), None)
    if repeated is not None:
        raise InputError(f"--groups puts {repeated!r} into two groups: name it once.")
    return found


def _bands(given: Any) -> dict[str, tuple[float, ...]]:
    """Return the cut points of columns, given as AGE=25,62, a list of these, or a mapping."""
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        parts = (str(part).partition("=") for part in values_of(given))
        given = {name.strip(): cuts.split(",") for name, _, cuts in parts}
    found = {}
    for name, cuts in given.items():
        try:
            numbers = tuple(float(cut) for cut in values_of(cuts))
        except (TypeError, ValueError):
            numbers = ()
        fine = name and numbers and all(map(math.isfinite, numbers))
        if not fine or list(numbers) != sorted(set(numbers)):
            raise InputError(
                f"--bands for {name!r} is {cuts!r}: give the column and where to cut it, in rising "
                "order, for example --bands AGE=25,62."
            )
        found[str(name)] = numbers
    return found


def _score_range(given: Any, score: str | None) -> tuple[float, float]:
    if given is None:
        return (0.0, 1.0)
    if score is None:
        raise InputError("--score-range is the scale of a score: name its column with --score.")
    parts = given.split(":") if isinstance(given, str) else values_of(given)
    try:
        low, high = (float(part) for part in parts)
        if low < high and math.isfinite(high - low):
            return low, high
    except (TypeError, ValueError, OverflowError):
        pass
    raise InputError(
        f"--score-range is {given!r}: give the lowest and the highest score, for example 300:850; "
        "where a high score is bad, type --score-is-risk as well."
    )
