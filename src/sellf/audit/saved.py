"""Audits read back from the JSON that `sellf audit --json` writes."""

import json
from pathlib import Path
from typing import Any

from sellf.audit.interval import Interval
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
from sellf.audit.verdict import say
from sellf.errors import InputError
from sellf.fairness.bounds import Certificate
from sellf.fairness.checks import one_of
from sellf.fairness.notions import NOTIONS, Notion

VERDICTS = ("fair", "unfair", "undetermined")


def read(path: Path) -> Audit | Audits:
    """Return the audit, or the audits of several notions, that a file holds."""
    try:
        content = json.loads(path.read_bytes())
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}.") from None
    except ValueError:
        raise InputError(f"{path} is not JSON: {_ADVICE}") from None
    try:
        if "notion" in content:
            return _audit(content)
        by_notion: dict[Notion, Audit] = {
            found.notion: found for found in map(_audit, content.values())
        }
        if not by_notion:
            raise ValueError("it is empty")
        return Audits(by_notion)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InputError(
            f"{path} does not hold an audit ({type(error).__name__}: {error}). {_ADVICE}"
        ) from None


_ADVICE = "Write one with `sellf audit ... --json > audit.json`."


def _audit(saved: dict[str, Any]) -> Audit:
    one_of("notion", saved["notion"], NOTIONS)
    one_of("verdict", saved["verdict"], VERDICTS)
    names = [_name(row["group"]) for row in saved["by_group"]]
    by_say = {say(name): name for name in names}
    omega = _number(saved["omega"])
    two = len(names) == 2 and len(saved["pairs"]) == 1
    overturned = float("inf") if saved["never_overturned"] else saved["overturned_at"]
    return Audit(
        notion=saved["notion"],
        omega=omega,
        delta=_number(saved["delta"]),
        verdict=saved["verdict"],
        difference=_interval(saved["difference"]),
        signed=_interval(saved["pairs"][0]) if two else None,
        by_group={
            name: _tuple(GroupFigures, row)
            for name, row in zip(names, saved["by_group"], strict=True)
        },
        naive=_number(saved["naive"]),
        imputed=_number(saved["imputed"]),
        needed=_needed(saved["needed"], by_say),
        method=str(saved["method"]),
        finite_sample=bool(saved["finite_sample"]),
        sensitivity=tuple(_tuple(Doubt, row) for row in saved["sensitivity"]),
        overturned_at=None if overturned is None else _number(overturned),
        certificate=_certificate(saved, omega, by_say),
        assumptions=tuple(map(str, saved["assumptions"])),
        warnings=tuple(map(str, saved["warnings"])),
        periods=tuple(_tuple(Period, row) for row in saved["periods"]),
        truth=None if saved["truth"] is None else _keyed(saved["truth"], by_say, _number),
        overlap=_overlap(saved["overlap"], by_say),
        void=saved.get("void"),
        drift=saved.get("drift"),
        differences=None if two or not saved["pairs"] else _pairs(saved["pairs"]),
        origin=None if saved["origin"] is None else Origin(**saved["origin"]),
        waiting=_waiting(saved.get("waiting"), by_say),
    )


def _pairs(saved: list[dict[str, Any]]) -> dict[tuple[Any, Any], Interval]:
    return {(_name(pair["first"]), _name(pair["second"])): _interval(pair) for pair in saved}


def _needed(saved: Any, names: dict[str, Any]) -> Needed | None:
    if saved is None:
        return None
    return Needed(
        _keyed(saved["people"], names, int),
        _keyed(saved["labels"], names, int),
        saved["accept_share"],
        saved.get("power"),
        str(saved["sentence"]),
    )


def _certificate(saved: dict[str, Any], omega: float, names: dict[str, Any]) -> Certificate | None:
    found = saved["certificate"]
    if found is None:
        return None
    # What JSON cannot hold is infinite here: nothing bounds it.
    bias, v = (float("inf") if found[key] is None else _number(found[key]) for key in ("bias", "v"))
    shares = _keyed(found["share_by_group"], names, lambda x: float("inf") if x is None else x)
    return Certificate(saved["notion"], omega, _number(found["imputed"]), bias, v, shares)


def _waiting(saved: Any, names: dict[str, Any]) -> Waiting | None:
    if saved is None:
        return None
    # A group without a decision that counts is named here only.
    immature = {names.get(key, key): int(n) for key, n in saved["immature"].items()}
    return Waiting(saved["cutoff"], immature, _keyed(saved["pending"], names, int))


def _overlap(saved: Any, names: dict[str, Any]) -> Overlap | None:
    if saved is None:
        return None
    return Overlap(
        _number(saved["level"]),
        _keyed(saved["by_group"], names, lambda counts: tuple(map(int, counts))),
        _keyed(saved["below"], names, int),
    )


def _keyed(saved: dict[str, Any], names: dict[str, Any], kind: Any) -> dict[Any, Any]:
    return {names[key]: kind(value) for key, value in saved.items()}


def _interval(saved: dict[str, Any]) -> Interval:
    return Interval(*(_number(saved[key]) for key in ("low", "value", "high")))


def _tuple(kind: Any, saved: dict[str, Any]) -> Any:
    """Return a named tuple; what JSON holds as null was no number."""
    words = ("name", "method", "verdict", "so_far")
    return kind(
        *(
            (None if saved[key] is None else str(saved[key]))
            if key in words
            else _number(saved[key])
            for key in kind._fields
        )
    )


def _number(value: Any) -> Any:
    if value is None:
        return float("nan")
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"{value!r} is no number")
    return value


def _name(name: Any) -> Any:
    return tuple(map(str, name)) if isinstance(name, list) else str(name)
