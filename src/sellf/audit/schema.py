"""The JSON Schema (2020-12) of an audit, with a version.

The version increases with every incompatible change: an entry is removed or changes its meaning.
New entries may be added without a new version.
"""

from typing import Any

VERSION = 1
TEXT, NUMBER, WHOLE, TRUTH = ({"type": kind} for kind in ("string", "number", "integer", "boolean"))


def _maybe(kind: dict[str, Any]) -> dict[str, Any]:
    return {"anyOf": [kind, {"type": "null"}]}


def _listed(kind: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": kind}


def _object(entries: dict[str, Any], optional: tuple[str, ...] = ()) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": entries,
        "required": [name for name in entries if name not in optional],
    }


INTERVAL = _object({"low": NUMBER, "value": NUMBER, "high": NUMBER})
NAME = {"anyOf": [TEXT, _listed(TEXT)]}
VERDICT = {"enum": ["fair", "unfair", "undetermined"]}
GROUP = _object(
    {
        "group": NAME,
        **dict.fromkeys(("low", "value", "high", "unidentified"), NUMBER),
        **dict.fromkeys(("people", "accepted"), WHOLE),
        **dict.fromkeys(("naive", "imputed", "imputation_bias"), _maybe(NUMBER)),
        "method": TEXT,
    }
)
QUALITY = _object(
    {
        **dict.fromkeys(("rows", "used"), WHOLE),
        "left_out": _listed(_object({"why": TEXT, "rows": WHOLE})),
        **dict.fromkeys(("first", "last"), _maybe(TEXT)),
        "duplicates": _maybe(WHOLE),
        "groups": _listed(
            _object({"group": TEXT, **dict.fromkeys(("rows", "accepted", "pending"), WHOLE)})
        ),
        **dict.fromkeys(("look_alikes", "identifiers", "after_decision"), _listed(TEXT)),
        "calibration": _listed(
            _object(
                {
                    "of": {"enum": ["propensity", "score"]},
                    "estimated": TRUTH,
                    "auc": _maybe(NUMBER),
                    "bins": _listed(
                        _object({"predicted": NUMBER, "observed": NUMBER, "people": WHOLE})
                    ),
                }
            )
        ),
    }
)
PERIOD = _object(
    {
        "name": TEXT,
        "people": WHOLE,
        **dict.fromkeys(("value", "low", "high"), NUMBER),
        "verdict": VERDICT,
        **dict.fromkeys(("so_far_low", "so_far_high"), _maybe(NUMBER)),
        "so_far": _maybe(VERDICT),
    }
)


def schema() -> dict[str, Any]:
    """Return the schema of what `sellf audit --json` prints: one audit, or one for each notion."""
    anything = {"type": ["object", "null"]}
    audit = _object(
        {
            "schema_version": {"const": VERSION},
            "notion": TEXT,
            "omega": NUMBER,
            "delta": NUMBER,
            "verdict": VERDICT,
            "difference": INTERVAL,
            **dict.fromkeys(("naive", "imputed", "overturned_at"), _maybe(NUMBER)),
            "method": TEXT,
            **dict.fromkeys(("finite_sample", "never_overturned"), TRUTH),
            "by_group": _listed(GROUP),
            "pairs": _listed(_object({"first": NAME, "second": NAME, **INTERVAL["properties"]})),
            "sensitivity": _listed(
                _object({"level": NUMBER, "low": NUMBER, "high": NUMBER, "verdict": VERDICT})
            ),
            **dict.fromkeys(("assumptions", "warnings"), _listed(TEXT)),
            **dict.fromkeys(("void", "drift"), _maybe(TEXT)),
            "periods": _listed(PERIOD),
            **dict.fromkeys(("needed", "certificate", "truth", "overlap", "waiting"), anything),
            "origin": anything,
            "quality": _maybe(QUALITY),
            "parts": {"type": "object", "additionalProperties": {"$ref": "#/$defs/audit"}},
            "sha256": TEXT,
        },
        optional=("sha256",),
    )
    several = {
        "type": "object",
        "minProperties": 1,
        "additionalProperties": {"$ref": "#/$defs/audit"},
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"An audit of a decision log, version {VERSION}",
        "$defs": {"audit": audit},
        "anyOf": [{"$ref": "#/$defs/audit"}, several],
    }
