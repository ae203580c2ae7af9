"""Errors caused by the user's input, as opposed to errors in the code."""

import re

RENAMED = {"feature": "features"}
"""Flags whose argument in Python has another name."""
WORDED = ("by", "encoding", "engine", "model", "notion", "other")
"""Flags whose value is a lower-case word; after other flags, lower-case words are prose."""
_FLAG = re.compile(
    r"(?P<command>`[^`]*`)"
    r"|(?<![\w-])--(?P<flag>[a-z]+(?:-[a-z]+)*)"
    r"(?: (?P<value>'[^']*'|[A-Z0-9](?:[\w=,/%:-]*\w)?)"
    rf"|(?:{'|'.join(f'(?<=--{flag})' for flag in WORDED)}) (?P<word>[a-z]\w*(?:-\w+)*))?"
)


class InputError(ValueError):
    """Raised if an input cannot be used; the message says what to type instead.

    Messages name flags. In Python they name the corresponding arguments instead; the command line
    prints the message as it was written, without a traceback, and exits with code 2.
    """

    @property
    def typed(self) -> str:
        """The message for users of the command line."""
        return super().__str__()

    def __str__(self) -> str:
        return in_python(self.typed)


def in_python(text: str) -> str:
    """Return a message with arguments in place of flags; commands in backticks stay as they are."""
    return _FLAG.sub(_argument, text)


def _argument(found: re.Match[str]) -> str:
    if found["command"]:
        return found["command"]
    name = RENAMED.get(found["flag"], found["flag"].replace("-", "_"))
    value = found["value"] or found["word"]
    if value is None:
        return name
    return f"{name}={value if value.isdigit() or value.startswith(chr(39)) else repr(value)}"
