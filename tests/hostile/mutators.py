"""Files made worse: damaged at random, or changed on purpose by somebody who knows the format."""

import json
import random
import re
from collections.abc import Callable
from typing import Any

import numpy as np

from sellf import files

Chance = random.Random

NASTY: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 2**31, 2**63, 10**30, 10**400, 0.5, -0.0, 1e308, 5e-324, "",
    "a", "../../../outside", "/dev/zero", "lending", "[/bold]", "\x1b[2J\x07", "__proto__",
    "\u202e", "x" * 10_000, [], [[]], [None], {}, {"a": {}}, ["a"] * 50, [0] * 1000,
)  # fmt: skip
RAW = ("NaN", "Infinity", "-Infinity", "1e999", "[" * 3000, '{"a":' * 3000, '"\\ud800"', "9" * 5000)
"""What JSON may say and no number or text can be."""
NUMBER = re.compile(r"\d+(\.\d+)?")


def damage(chance: Chance, content: bytes) -> bytes:
    """Return bytes as a bad disk or a cut connection leaves them."""
    if not content:
        return bytes(chance.randrange(256) for _ in range(8))
    at = chance.randrange(len(content))
    far = min(len(content), at + chance.choice((1, 4, 64, 4096)))
    other = bytes(chance.randrange(256) for _ in range(chance.choice((1, 8, 64))))
    ways: tuple[Callable[[], bytes], ...] = (
        lambda: content[:at] + bytes([content[at] ^ 1 << chance.randrange(8)]) + content[at + 1 :],
        lambda: content[:at],
        lambda: content[:at] + content[far:],
        lambda: content[:at] + other + content[at:],
        lambda: content[:at] + other + content[at + len(other) :],
        lambda: content + content[at:far],
        lambda: content[:at] + bytes(far - at) + content[far:],
        lambda: b"",
    )
    return chance.choice(ways)()


def json_on_purpose(chance: Chance, content: bytes, seal: bool = True) -> bytes:
    """Return JSON with something else in it; sealed again, if it was, so that it is looked at."""
    parsed = json.loads(content)
    for _ in range(chance.choice((1, 1, 2, 5))):
        parsed = _changed(chance, parsed)
    if seal and isinstance(parsed, dict) and "sha256" in parsed:
        parsed["sha256"] = files.seal(parsed)
    text = json.dumps(parsed)
    if chance.random() < 0.1:
        values = [part for part in text.split(": ") if part]
        text = text.replace(f": {chance.choice(values)}", f": {chance.choice(RAW)}", 1)
    return text.encode("utf-8", "surrogatepass")


def _changed(chance: Chance, value: Any) -> Any:
    """Return a value of JSON with one thing in it replaced, left out, or put in."""
    if isinstance(value, dict) and value and chance.random() < 0.9:
        key = chance.choice(list(value))
        act = chance.random()
        if act < 0.1:
            return {k: v for k, v in value.items() if k != key}
        if act < 0.2:
            return value | {str(chance.choice(NASTY)): chance.choice(NASTY)}
        return value | {key: _changed(chance, value[key])}
    if isinstance(value, list) and value and chance.random() < 0.9:
        at = chance.randrange(len(value))
        act = chance.random()
        if act < 0.1:
            return value[:at] + value[at + 1 :]
        if act < 0.2:
            return value + value[at:]
        return [*value[:at], _changed(chance, value[at]), *value[at + 1 :]]
    counts = isinstance(value, int | float) and not isinstance(value, bool)
    if counts and abs(value) < 1e300 and chance.random() < 0.5:
        return value * chance.choice((-1, 2, 0, 1.0001, 1e10))
    return chance.choice(NASTY)


def tensors_on_purpose(chance: Chance, content: bytes) -> bytes:
    """Return arrays of which one is another; their checksum is right."""
    from safetensors.numpy import load

    arrays = load(content)
    name = chance.choice(list(arrays))
    array = arrays[name].copy()
    flat = array.reshape(-1)
    ways: tuple[Callable[[], Any], ...] = (
        lambda: array.astype(chance.choice((np.float32, np.float64, np.int8, np.int64, np.uint8))),
        lambda: flat[: chance.randrange(len(flat) + 1)],
        lambda: np.concatenate([flat, flat]),
        lambda: array[None],
        lambda: _with(array, chance, chance.choice((np.nan, np.inf, -1, 2**30, 1e30))),
        lambda: np.zeros((0,), array.dtype),
        lambda: None,
    )
    changed = chance.choice(ways)()
    arrays.pop(name)
    if changed is not None:
        arrays[chance.choice((name, name, name, "other"))] = changed
    return files.tensors_to_bytes(arrays)


def _with(array: np.ndarray, chance: Chance, value: float) -> np.ndarray:
    if not array.size:
        return array
    if array.dtype.kind in "iu":
        value = int(np.clip(np.nan_to_num(value), np.iinfo(array.dtype).min, 127))
    array.reshape(-1)[chance.randrange(array.size)] = value
    return array


def lines_on_purpose(chance: Chance, content: bytes) -> bytes:
    """Return JSON lines, or any lines, of which one is another, in another place, or gone."""
    lines = content.split(b"\n")
    at = chance.randrange(len(lines))
    act = chance.random()
    if act < 0.2:
        return b"\n".join(lines[:at] + lines[at + 1 :])
    if act < 0.4:
        return b"\n".join([*lines[:at], lines[at], *lines[at:]])
    if act < 0.6:
        chance.shuffle(lines)
        return b"\n".join(lines)
    if lines[at].startswith(b"{"):
        lines[at] = json_on_purpose(chance, lines[at])
    else:
        lines[at] = damage(chance, lines[at])
    return b"\n".join(lines)


def toml_on_purpose(chance: Chance, content: bytes) -> bytes:
    """Return TOML in which a value is another."""
    lines = content.decode().split("\n")
    values = [i for i, line in enumerate(lines) if " = " in line]
    at = chance.choice(values)
    key, _, _ = lines[at].partition(" = ")
    if chance.random() < 0.3:
        # A study that may well be one.
        lines[at] = NUMBER.sub(str(chance.choice((0, 1, 2, 7, 0.5, 300))), lines[at], count=1)
        return "\n".join(lines).encode()
    value = chance.choice(NASTY)
    text = json.dumps(value) if not isinstance(value, dict) else "{}"
    text = chance.choice((text, text, "inf", "nan", "[" * 3000, "1979-05-27T07:32:00Z", "'''"))
    if chance.random() < 0.2:
        key = chance.choice(("name", "seeds", "steps", "omega", "world_settings", "a.b", '""'))
    lines[at] = f"{key} = {text}"
    if chance.random() < 0.2:
        lines.append(f"[{chance.choice(('algorithms', 'world_settings'))}.{key.strip()}]")
    return "\n".join(lines).encode("utf-8", "surrogatepass")


def sums_on_purpose(chance: Chance, content: bytes) -> bytes:
    """Return checksums that name other files too."""
    name = chance.choice(
        ("../../../planted.py", "/dev/zero", "/etc/passwd", "tmp", "", ".", "a\0b")
    )
    digest = chance.choice((content[:64], b"0" * 64, b""))
    return content + digest + b"  " + name.encode() + b"\n"
