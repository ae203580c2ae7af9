"""User-defined terms for decisions and outcomes in reports, such as "searched" and "found"."""

import re
from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any, NamedTuple

from sellf.errors import InputError

AS_THEY_ARE = frozenset({"names", "x_names", "command", "date"})
"""Fields that hold names from the log or commands, and are not rewritten."""


class Words(NamedTuple):
    """The terms for accepted and for a good outcome."""

    accepted: str
    good: str

    @classmethod
    def of(cls, text: Any) -> "Words | None":
        """Parse two terms such as 'searched,found'; None stays None."""
        if text is None:
            return None
        parts = [part.strip() for part in str(text).split(",")]
        if len(parts) != 2 or not all(re.fullmatch(r"[^\W\d_][\w \-]{0,39}", p) for p in parts):
            raise InputError(
                f"--words is {text!r}: give what to say for accepted and for a good outcome, with "
                "a comma between them, for example searched,found."
            )
        return cls(*parts)

    def rewrite(self, text: str) -> str:
        """Return a text with these terms."""
        for pattern, new in self._changes():
            text = pattern.sub(lambda found, new=new: _as_begun(found[0], new), text)
        return text

    def page(self, value: Any) -> Any:
        """Return the contents of a page with these terms; names from the log are unchanged."""
        if isinstance(value, str):
            return self.rewrite(value)
        if is_dataclass(value) and not isinstance(value, type):
            if getattr(value, "kind", "") == "code":
                return value
            named = {one.name: getattr(value, one.name) for one in fields(value) if one.init}
            kept = {name: self._field(name, content) for name, content in named.items()}
            return replace(value, **kept)
        if isinstance(value, Mapping):  # a table: only its column names are rewritten
            return {self.page(name): content for name, content in value.items()}
        if isinstance(value, list | tuple) and not hasattr(value, "_fields"):
            return type(value)(self.page(item) for item in value)
        return value

    def _field(self, name: str, content: Any) -> Any:
        return content if name in AS_THEY_ARE else self.page(content)

    def _changes(self) -> list[tuple[re.Pattern[str], str]]:
        a, good = self
        changes = [
            ("have a good outcome", f'have the outcome "{good}"'),
            ("outcome is good", f'outcome is "{good}"'),
            ("outcome is bad", f'outcome is not "{good}"'),
            ("good outcomes", f'outcomes "{good}"'),
            ("a good outcome", f'the outcome "{good}"'),
            ("a bad outcome", f'the outcome not "{good}"'),
            ("good or bad", f'"{good}" or not'),
            ("among the accepted", f"among those {a}"),
            ("rejected applications", f"cases that were not {a}"),
            ("accepted people", f"people {a}"),
            ("rejected people", f"people not {a}"),
            ("the accepted", f"those {a}"),
            ("the rejected", f"those not {a}"),
            ("somebody accepted", f"somebody {a}"),
            ("of acceptance", f"of being {a}"),
            ("acceptance", f"being {a}"),
            ("accepted", a),
            ("rejected", f"not {a}"),
            ("new applications", "new cases"),
            ("applications", "cases"),
            ("applicants", "people"),
        ]
        # Flags such as --hide-rejected-outcomes are not rewritten.
        return [
            (re.compile(rf"(?<![-\w]){re.escape(old)}(?![-\w])", re.IGNORECASE), new)
            for old, new in changes
        ]


def _as_begun(old: str, new: str) -> str:
    """Return the new term, capitalised if the old one was."""
    return new[:1].upper() + new[1:] if old[:1].isupper() else new
