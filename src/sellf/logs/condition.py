"""Conditions on rows, such as `year = 2014 and race in ('B', 'W')`: parsed here, never run as SQL.

A condition compares columns with numbers, words in quotes, and dates. It is converted to a narwhals
expression, so it has the same meaning in every engine, and it can name only columns of the log.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any, NamedTuple

import narwhals as nw

from sellf.errors import InputError
from sellf.logs.names import short

TOKEN = re.compile(
    r"""\s*(?:
    (?P<number>[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)(?![\w.])
    |(?P<word>'(?:[^']|'')*')
    |(?P<column>"(?:[^"]|"")*"|`[^`]*`)
    |(?P<name>[^\W\d][\w.]*)
    |(?P<sign><>|!=|<=|>=|==|=|<|>|\(|\)|,)
    )""",
    re.VERBOSE,
)
COMPARISONS = {"=": "==", "==": "==", "<>": "!=", "!=": "!=", "<": "<", "<=": "<=", ">": ">",
               ">=": ">="}  # fmt: skip
EXAMPLE = "--where \"year = 2014 and race in ('B', 'W')\""
DIGITS = 300
"""Most digits that a number may have."""
DEEPEST = 50
"""Deepest nesting of parentheses and `not`."""


class Token(NamedTuple):
    """A part of a condition."""

    kind: str
    text: str


class Test(NamedTuple):
    """A comparison of a column with values."""

    column: str
    sign: str
    """==, !=, <, <=, >, >=, in or missing."""
    values: tuple[Any, ...]


class Not(NamedTuple):
    """The negation of a condition."""

    of: Any


class Both(NamedTuple):
    """Several conditions, joined with `and` or with `or`."""

    joined: str
    of: tuple[Any, ...]


@dataclass(frozen=True)
class Condition:
    """A condition on rows."""

    text: str
    tree: Any

    def columns(self) -> list[str]:
        """Return the columns that the condition names."""
        return list(dict.fromkeys(_columns(self.tree)))

    def expression(self, schema: Mapping[str, Any]) -> Any:
        """Return the condition for an engine; rows for which it is unknown are left out.

        Args:
            schema: the type of every column.
        """
        return _expression(self.tree, schema)


def parse(text: str) -> Condition:
    """Parse a condition."""
    if not isinstance(text, str) or not text.strip():
        raise InputError(f"where is {text!r}: give a condition, for example {EXAMPLE}.")
    tokens, at = [], 0
    rest = text.rstrip()
    while at < len(rest):
        found = TOKEN.match(rest, at)
        if found is None:
            raise InputError(
                f"where {text!r} cannot be read from {short(rest[at:].strip())} on: compare a "
                f"column with a number or with a word in single quotes, {EXAMPLE}."
            )
        tokens.append(Token(str(found.lastgroup), found[str(found.lastgroup)]))
        at = found.end()
    reader = _Reader(text, tokens)
    tree = reader.either(0)
    reader.end()
    return Condition(text, tree)


class _Reader:
    """Parses tokens from left to right."""

    def __init__(self, text: str, tokens: list[Token]) -> None:
        self.text, self.tokens, self.at = text, tokens, 0

    def fail(self, expected: str) -> InputError:
        here = repr(self.tokens[self.at].text) if self.at < len(self.tokens) else "the end"
        return InputError(
            f"where {self.text!r}: {expected} was expected at {here}; for example {EXAMPLE}."
        )

    def is_next(self, *words: str) -> bool:
        if self.at >= len(self.tokens):
            return False
        kind, text = self.tokens[self.at]
        return kind in ("name", "sign") and text.lower() in words

    def takes(self, *words: str) -> str | None:
        if not self.is_next(*words):
            return None
        self.at += 1
        return self.tokens[self.at - 1].text.lower()

    def end(self) -> None:
        if self.at < len(self.tokens):
            raise self.fail("'and', 'or' or the end")

    def either(self, depth: int) -> Any:
        return self._joined("or", lambda: self._joined("and", lambda: self.single(depth)))

    def _joined(self, word: str, part: Any) -> Any:
        parts = [part()]
        while self.takes(word):
            parts.append(part())
        return parts[0] if len(parts) == 1 else Both(word, tuple(parts))

    def single(self, depth: int) -> Any:
        if depth > DEEPEST:
            raise InputError(f"where is nested more than {DEEPEST} levels deep: simplify it.")
        if self.takes("not"):
            return Not(self.single(depth + 1))
        if self.takes("("):
            inner = self.either(depth + 1)
            if not self.takes(")"):
                raise self.fail("')'")
            return inner
        return self.test()

    def test(self) -> Any:
        column = self.column()
        if self.takes("is"):
            negated = self.takes("not")
            if not self.takes("missing", "null", "empty"):
                raise self.fail("'missing'")
            return Not(Test(column, "missing", ())) if negated else Test(column, "missing", ())
        if self.takes("between"):
            low = self.value()
            if not self.takes("and"):
                raise self.fail("'and'")
            return Both("and", (Test(column, ">=", (low,)), Test(column, "<=", (self.value(),))))
        negated = self.takes("not")
        if self.takes("in"):
            found = Test(column, "in", self.values())
            return Not(found) if negated else found
        sign = None if negated else self.takes(*COMPARISONS)
        if sign is None:
            raise self.fail("'=', '<', 'in' or 'is missing'")
        return Test(column, COMPARISONS[sign], (self.value(),))

    def column(self) -> str:
        if self.at < len(self.tokens):
            kind, text = self.tokens[self.at]
            if kind == "name" and text.lower() not in ("and", "or", "in", "is"):
                self.at += 1
                return text
            if kind == "column":
                self.at += 1
                return text[1:-1].replace('""', '"') if text[0] == '"' else text[1:-1]
        raise self.fail("a column's name")

    def values(self) -> tuple[Any, ...]:
        if not self.takes("("):
            raise self.fail("'('")
        found = [self.value()]
        while self.takes(","):
            found.append(self.value())
        if not self.takes(")"):
            raise self.fail("')'")
        return tuple(found)

    def value(self) -> Any:
        if self.at < len(self.tokens):
            kind, text = self.tokens[self.at]
            if kind == "number":
                self.at += 1
                if len(text) > DIGITS:
                    raise InputError(
                        f"where compares with a number of {len(text):,} digits, {text[:12]}...: "
                        f"{DIGITS} are the most."
                    )
                # Engines' whole numbers end at 2^63.
                return int(text) if re.fullmatch(r"[+-]?\d{1,18}", text) else float(text)
            if kind == "word":
                self.at += 1
                return text[1:-1].replace("''", "'")
            if kind == "name" and text.lower() in ("true", "false"):
                self.at += 1
                return text.lower() == "true"
            if kind in ("name", "column"):
                raise InputError(
                    f"where {self.text!r} compares with {text}: put words in single quotes, "
                    f"'{text.strip(chr(34) + '`')}'."
                )
        raise self.fail("a number, or a word in single quotes")


def _columns(tree: Any) -> list[str]:
    if isinstance(tree, Test):
        return [tree.column]
    parts = (tree.of,) if isinstance(tree, Not) else tree.of
    return [name for part in parts for name in _columns(part)]


def _expression(tree: Any, schema: Mapping[str, Any]) -> Any:
    if isinstance(tree, Not):
        return ~_expression(tree.of, schema)
    if isinstance(tree, Both):
        first, *rest = (_expression(part, schema) for part in tree.of)
        for other in rest:
            first = first & other if tree.joined == "and" else first | other
        return first
    kind = schema[tree.column]
    column = nw.col(tree.column)
    if kind in (nw.Categorical, nw.Enum):
        column, kind = column.cast(nw.String), nw.String()
    if tree.sign == "missing":
        gone = column.is_null()
        return gone | (column.str.strip_chars() == "") if kind == nw.String else gone
    if kind == nw.String:
        column = column.str.strip_chars()
    if kind in (nw.Date, nw.Datetime):
        column = column.cast(nw.Date)
    values = [_as(value, kind, tree) for value in tree.values]
    if tree.sign == "in":
        return column.is_in(values)
    value = nw.lit(values[0])
    return {
        "==": lambda: column == value,
        "!=": lambda: column != value,
        "<": lambda: column < value,
        "<=": lambda: column <= value,
        ">": lambda: column > value,
        ">=": lambda: column >= value,
    }[tree.sign]()


def _as(value: Any, kind: Any, test: Test) -> Any:
    """Return a value as the type of its column; refuse a value of another type."""
    if kind == nw.String:
        if not isinstance(value, str) and test.sign in ("<", "<=", ">", ">="):
            raise InputError(
                f"where: column {test.column!r} holds words, and {value} is a number: compare it "
                f"with = or in, or with a word in single quotes."
            )
        return value if isinstance(value, str) else str(value)
    if kind in (nw.Date, nw.Datetime):
        try:
            return date.fromisoformat(str(value))
        except ValueError:
            raise InputError(
                f"where: column {test.column!r} holds dates, and {value!r} is not a date: write "
                "'2026-03-31'."
            ) from None
    if kind == nw.Boolean:
        if value in (0, 1) or str(value).lower() in ("true", "false"):
            return bool(value) if not isinstance(value, str) else value.lower() == "true"
    elif kind.is_numeric():
        try:
            return value if not isinstance(value, str) else float(value)
        except ValueError:
            pass
    raise InputError(
        f"where: column {test.column!r} holds {kind} values, and {value!r} is not one: compare it "
        "with a value of that type."
    )
