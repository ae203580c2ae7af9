"""Reading of audits from the JSON that `sellf audit --json` writes."""

import math
from pathlib import Path
from typing import Any

from sellf import files
from sellf.audit.interval import Interval
from sellf.audit.measured import from_plain
from sellf.audit.measures import KINDS
from sellf.audit.quality import Quality
from sellf.audit.result import (
    Audit,
    Audits,
    Doubt,
    GroupFigures,
    Needed,
    Origin,
    Overlap,
    Period,
    Waiting,
)
from sellf.audit.verdict import decide, largest
from sellf.errors import InputError
from sellf.fairness.bounds import Certificate
from sellf.fairness.checks import one_of
from sellf.fairness.notions import Notion, define
from sellf.logs.names import say

VERDICTS = ("fair", "unfair", "undetermined")


class EditedError(ValueError):
    """A conclusion in a file does not follow from its figures."""


def read(path: Path) -> Audit | Audits:
    """Read the audit, or the audits of several notions, from a file."""
    try:
        content = files.parse_json(files.read(path, files.LARGEST_TEXT))
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}.") from None
    except InputError:
        raise
    except ValueError as error:
        raise InputError(f"{path} is not JSON that can be read ({error}). {_ADVICE}") from None
    try:
        if not isinstance(content, dict):
            raise ValueError("it is not an object")
        if "notion" in content:
            return _sealed(content)
        by_notion: dict[Notion, Audit] = {
            found.notion: found for found in map(_sealed, content.values())
        }
        if not by_notion:
            raise ValueError("it is empty")
        return Audits(by_notion)
    except EditedError as error:
        raise InputError(f"{path} is not as it was written: {error} {_ADVICE}") from None
    except (KeyError, TypeError, ValueError, AttributeError, IndexError, OverflowError) as error:
        raise InputError(
            f"{path} does not hold an audit ({type(error).__name__}: {error}). {_ADVICE}"
        ) from None


_ADVICE = "Write one with `sellf audit ... --json > audit.json`."


def _sealed(saved: dict[str, Any]) -> Audit:
    """Return an audit after verifying its checksum."""
    found = _audit(saved)
    if saved.get("sha256") != files.seal(saved):
        raise EditedError("its figures do not match its checksum.")
    return found


def _audit(saved: dict[str, Any]) -> Audit:
    definition = define(saved["notion"])
    names = [_name(row["group"]) for row in saved["by_group"]]
    by_say = {say(name): name for name in names}
    if len(by_say) < max(2, len(names)):
        raise ValueError("there are fewer than two groups, or two with the same name")
    omega, delta = _within(saved["omega"], 0.0, math.inf), _within(saved["delta"], 0.0, 1.0)
    difference = _interval(saved["difference"])
    if saved.get("void") is None:
        _same_verdict("the verdict", saved["verdict"], difference, omega)
    elif saved["verdict"] != "undetermined":
        raise EditedError(f"the verdict says {saved['verdict']!r}, though there can be none.")
    parts = {name: _audit(part) for name, part in saved.get("parts", {}).items()}
    several = [rate.name for rate in definition.rates if rate.name != saved["notion"]]
    if list(parts) != several or [part.notion for part in parts.values()] != several:
        raise ValueError(f"parts are not those of {saved['notion']}")
    if parts and largest([part.difference for part in parts.values()]) != difference:
        raise EditedError("the disparity is not the largest of its parts.")
    two = len(names) == 2 and len(saved["pairs"]) == 1
    overturned = float("inf") if _flag(saved["never_overturned"]) else saved["overturned_at"]
    return Audit(
        notion=saved["notion"],
        omega=omega,
        delta=delta,
        verdict=saved["verdict"],
        difference=difference,
        signed=_interval(saved["pairs"][0]) if two else None,
        by_group={
            name: _tuple(GroupFigures, row)
            for name, row in zip(names, saved["by_group"], strict=True)
        },
        naive=_number(saved["naive"]),
        imputed=_number(saved["imputed"]),
        needed=_needed(saved["needed"], by_say),
        method=_text(saved["method"]),
        finite_sample=_flag(saved["finite_sample"]),
        sensitivity=tuple(_doubt(row, omega) for row in saved["sensitivity"]),
        overturned_at=None if overturned is None else _number(overturned),
        certificate=_certificate(saved, omega, by_say),
        assumptions=_texts(saved["assumptions"]),
        warnings=_texts(saved["warnings"]),
        periods=tuple(_period(row, omega) for row in saved["periods"]),
        truth=None if saved["truth"] is None else _of_every(saved["truth"], by_say, _number),
        overlap=_overlap(saved["overlap"], by_say),
        void=None if saved.get("void") is None else _text(saved["void"]),
        drift=None if saved.get("drift") is None else _text(saved["drift"]),
        differences=None if two or not saved["pairs"] else _pairs(saved["pairs"]),
        origin=None if saved["origin"] is None else _origin(saved["origin"]),
        waiting=_waiting(saved.get("waiting"), by_say),
        quality=None if saved.get("quality") is None else from_plain(Quality, saved["quality"]),
        parts=parts,
        measures={
            name: from_plain(KINDS[name], found)
            for name, found in saved.get("measures", {}).items()
        },
    )


def _pairs(saved: list[dict[str, Any]]) -> dict[tuple[Any, Any], Interval]:
    return {(_name(pair["first"]), _name(pair["second"])): _interval(pair) for pair in saved}


def _same_verdict(what: str, verdict: Any, interval: Interval, omega: float) -> None:
    """Raise EditedError if a verdict does not follow from its interval."""
    one_of("verdict", verdict, VERDICTS)
    follows = decide(interval, omega)
    if verdict != follows:
        low, _, high = interval
        raise EditedError(
            f"{what} says {verdict}, but {low:.3g} to {high:.3g} at tolerance {omega:g} is "
            f"{follows}."
        )


def _doubt(saved: dict[str, Any], omega: float) -> Doubt:
    _within(saved["level"], 1.0, 1e12)
    found: Doubt = _tuple(Doubt, saved)
    interval = _ordered(Interval(found.low, found.low, found.high))
    _same_verdict(f"the sensitivity at {found.level:g}", found.verdict, interval, omega)
    return found


def _period(saved: dict[str, Any], omega: float) -> Period:
    found: Period = _tuple(Period, saved)
    own = _ordered(Interval(found.low, found.low, found.high))
    if found.verdict != "undetermined":  # contradicted propensities void a period's verdict
        _same_verdict(f"the period {found.name}", found.verdict, own, omega)
    if found.so_far is not None:
        past = _ordered(Interval(found.so_far_low, found.so_far_low, found.so_far_high))
        _same_verdict(f"everything up to {found.name}", found.so_far, past, omega)
    return found


def _origin(saved: dict[str, Any]) -> Origin:
    found = Origin(**saved)
    for words in (found.columns, found.versions):
        if not all(isinstance(word, str) for pair in words.items() for word in pair):
            raise TypeError("origin holds a value that is not text")
    if not isinstance(found.files, list):
        raise TypeError("files is not a list")
    for word in (found.command, found.fingerprint_of, found.fingerprint or "", *found.files):
        _text(word)
    _whole(found.rows)
    return found


def _needed(saved: Any, names: dict[str, Any]) -> Needed | None:
    if saved is None:
        return None
    return Needed(
        _keyed(saved["people"], names, _whole),
        _keyed(saved["labels"], names, _whole),
        None if saved["accept_share"] is None else _within(saved["accept_share"], 0.0, 1.0),
        None if saved.get("power") is None else _within(saved["power"], 0.0, 1.0),
        _text(saved["sentence"]),
    )


def _certificate(saved: dict[str, Any], omega: float, names: dict[str, Any]) -> Certificate | None:
    found = saved["certificate"]
    if found is None:
        return None
    # JSON cannot hold infinite values; null means infinite here.
    bias, v = (float("inf") if found[key] is None else _number(found[key]) for key in ("bias", "v"))
    shares = _of_every(
        found["share_by_group"], names, lambda x: float("inf") if x is None else _number(x)
    )
    return Certificate(saved["notion"], omega, _number(found["imputed"]), bias, v, shares)


def _waiting(saved: Any, names: dict[str, Any]) -> Waiting | None:
    if saved is None:
        return None
    # A group without any decision that counts appears here only.
    immature = {names.get(key, key): int(n) for key, n in saved["immature"].items()}
    return Waiting(saved["cutoff"], immature, _keyed(saved["pending"], names, int))


def _overlap(saved: Any, names: dict[str, Any]) -> Overlap | None:
    if saved is None:
        return None
    return Overlap(
        _number(saved["level"]),
        _of_every(saved["by_group"], names, lambda counts: tuple(map(_whole, counts))),
        _of_every(saved["below"], names, _whole),
    )


def _keyed(saved: dict[str, Any], names: dict[str, Any], kind: Any) -> dict[Any, Any]:
    return {names[key]: kind(value) for key, value in saved.items()}


def _of_every(saved: dict[str, Any], names: dict[str, Any], kind: Any) -> dict[Any, Any]:
    """Return a figure for each group; raise ValueError if one is missing."""
    if saved.keys() != names.keys():
        raise ValueError(f"{', '.join(names.keys() - saved.keys()) or 'a group'} is missing")
    return _keyed(saved, names, kind)


def _interval(saved: dict[str, Any]) -> Interval:
    return _ordered(Interval(*(_number(saved[key]) for key in ("low", "value", "high"))))


def _ordered(interval: Interval) -> Interval:
    """Raise ValueError if the ends are not numbers or not in order."""
    low, value, high = interval
    if not (low <= high and low - 1e-9 <= value <= high + 1e-9):
        raise ValueError(f"{value!r} is not between {low!r} and {high!r}")
    return interval


WORDS = ("name", "method", "verdict", "so_far")
COUNTS = ("people", "accepted")


def _tuple(kind: Any, saved: dict[str, Any]) -> Any:
    """Return a named tuple; null becomes NaN."""
    by_name: dict[str, Any] = {**dict.fromkeys(WORDS, _text), **dict.fromkeys(COUNTS, _whole)}
    by_name["so_far"] = lambda word: None if word is None else _text(word)
    return kind(*(by_name.get(key, _number)(saved[key]) for key in kind._fields))


def _number(value: Any) -> Any:
    if value is None:
        return float("nan")
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"{str(value)[:60]!r} is not a number")
    if not math.isfinite(value):
        raise ValueError(f"{str(value)[:60]!r} is not finite")
    return value


def _within(value: Any, low: float, high: float) -> float:
    if value is None or not low <= _number(value) <= high:
        raise ValueError(f"{str(value)[:60]!r} is not between {low:g} and {high:g}")
    return value


def _whole(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 2**63:
        raise TypeError(f"{str(value)[:60]!r} is not a number of people")
    return value


def _flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise TypeError(f"{str(value)[:60]!r} is neither true nor false")
    return value


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{str(value)[:60]!r} is not text")
    return value


def _texts(values: Any) -> tuple[str, ...]:
    if not isinstance(values, list):
        raise TypeError(f"{str(values)[:60]!r} is not a list")
    return tuple(map(_text, values))


def _name(name: Any) -> Any:
    return _texts(name) if isinstance(name, list) else _text(name)
