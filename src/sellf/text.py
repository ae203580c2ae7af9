"""Safe display of names from data, whose characters must not control a terminal."""

import unicodedata
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.text import Text

_HARMLESS = "\n\t"
_HIDDEN = ("Cc", "Cs")
_TURNS = "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
"""Characters that change the direction of what follows them."""


def plain(value: Any, keep: str = _HARMLESS) -> str:
    """Return a text with its control characters escaped, so that it cannot control a terminal.

    Args:
        value: the value to show.
        keep: control characters that are not escaped.
    """
    text = str(value)
    if text.isprintable():
        return text
    return "".join(c if c in keep or not _commands(c) else _written(c) for c in text)


def plain_json(text: str) -> str:
    """Return JSON of the same values with control characters escaped."""
    return "".join(
        c if c == "\n" or c.isascii() or not _commands(c) else f"\\u{ord(c):04x}" for c in text
    )


def _commands(character: str) -> bool:
    return unicodedata.category(character) in _HIDDEN or character in _TURNS


def _written(character: str) -> str:
    return character.encode("unicode_escape", "backslashreplace").decode("ascii")


def name(value: Any, style: str = "") -> "Text":
    """Return a name that rich prints literally, including brackets."""
    from rich.text import Text

    return Text(plain(value, keep=""), style=style)
