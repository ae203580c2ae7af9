"""Do trained parameters and audits still come out as they did?

    python tools/same_numbers.py --record FOLDER        # at the commit to compare with
    python tools/same_numbers.py --check FOLDER         # at any later one

Every algorithm is trained for ten iterations in every world of the paper, for each of its notions,
and twenty generated logs are audited with a fixed seed. Of a training are kept a checksum of the
parameters' bytes, their norm and sixteen projections on fixed directions; of an audit all numbers.
"""

import argparse
import hashlib
import json
import time
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

WORLDS = ("lending", "recidivism", "school")
NOTIONS = ("opportunity", "accuracy", "qualification")
VARIANTS: dict[str, tuple[str, dict[str, Any]]] = {
    "focops imputed": ("focops", {"cost": "imputed"}),
    "sellf-direct guard": ("sellf-direct", {"guard": True}),
    "sellf-direct batch": ("sellf-direct", {"estimate": "batch"}),
    "sellf-direct semi": ("sellf-direct", {"semi_stochastic": True}),
}
"""Settings that change more than numbers."""
ITERATIONS = 10
DIRECTIONS = 16
TOLERANCE = 1e-5

Case = tuple[str, Callable[[], dict[str, Any]]]


def cases(parts: list[str]) -> Iterator[Case]:
    """Return the name of every case, and how to come by its numbers."""
    if "train" in parts:
        from sellf.algorithms.catalogue import ALGORITHMS

        plain: dict[str, tuple[str, dict[str, Any]]] = {name: (name, {}) for name in ALGORITHMS}
        for name, world, notion in product(plain, WORLDS, NOTIONS):
            yield _training(name, *plain[name], world, notion)
        for name, notion in product(VARIANTS, NOTIONS):
            yield _training(name, *VARIANTS[name], "lending", notion)
    if "audit" in parts:
        for seed in range(20):
            yield f"audit {seed}", lambda seed=seed: audited(seed)


def _training(name: str, algorithm: str, settings: dict[str, Any], world: str, notion: str) -> Case:
    return f"{name}, {world}, {notion}", lambda: trained(algorithm, settings, world, notion)


def trained(algorithm: str, settings: dict[str, Any], world: str, notion: Any) -> dict[str, Any]:
    """Train one agent for a few iterations; return what identifies its parameters."""
    import jax

    import sellf

    steps = 2048 * ITERATIONS
    agent = sellf.train(
        world, algorithm, notion=notion, steps=steps, seed=1, progress=False, **settings
    )
    parts = {"parameters": agent.parameters, "predictor": agent.predictor}
    # A hundred programs side by side would be more than the system maps into memory.
    jax.clear_caches()
    return {name: signature(part) for name, part in parts.items() if part is not None}


def signature(parameters: Any) -> dict[str, Any]:
    """Return a checksum, and numbers that change by no more than the parameters do."""
    values = np.asarray(parameters)
    directions = np.random.default_rng(0).standard_normal((DIRECTIONS, values.size))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    wide = values.astype(np.float64)
    return {
        "sha256": hashlib.sha256(values.tobytes()).hexdigest(),
        "norm": float(np.linalg.norm(wide)),
        "projections": (directions @ wide).tolist(),
    }


def audited(seed: int) -> dict[str, Any]:
    """Audit a generated log; return all numbers that the audit gives, by where they stand."""
    import sellf

    log, options = generated(seed)
    found = sellf.audit_all(log, group="group", decision="accepted", seed=seed, **options)
    return {
        notion: dict(_numbers(figures, ""))
        for notion, figures in found.to_dict().items()
        if notion in (*NOTIONS, "demographic")
    }


def generated(seed: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return a log and how to audit it; what is known of it varies with the seed."""
    rng = np.random.default_rng(seed)
    people = int(rng.integers(400, 6000))
    names = np.array(["a", "b", "c", "d"][: 2 + seed % 3])
    group = rng.choice(names, people)
    x = rng.random(people)
    chance = np.clip(0.15 + 0.7 * x - 0.1 * (group == "b"), 0.05, 0.95)
    accepted = rng.random(people) < chance
    good = rng.random(people) < 0.2 + 0.6 * x
    log = {
        "group": group,
        "accepted": accepted.astype(int),
        "repaid": np.where(accepted, good, np.nan),
        "chance": chance,
        "score": 0.25 + 0.5 * x,
        "x": x,
    }
    options: dict[str, Any] = {"outcome": "repaid"}
    kind = seed % 5
    if kind in (0, 1, 4):
        options["propensity"] = "chance"
    if kind in (1, 2):
        options["score"] = "score"
    if kind == 3:
        options |= {"features": ["x"], "model": "logistic"}
    if kind == 4:
        options["anytime"] = True
    return log, options


def _numbers(value: Any, place: str) -> Iterator[tuple[str, float | str]]:
    if isinstance(value, dict):
        for key, part in value.items():
            if key != "origin":
                yield from _numbers(part, f"{place}/{key}")
    elif isinstance(value, list | tuple):
        for number, part in enumerate(value):
            yield from _numbers(part, f"{place}/{number}")
    elif isinstance(value, int | float):
        yield place, float(value)


def difference(old: dict[str, Any], new: dict[str, Any]) -> float:
    """Return the largest relative difference; 0 for the same bits, infinite for other figures."""
    if old == new or json.dumps(old) == json.dumps(new):
        return 0.0
    if old.keys() != new.keys():
        return float("inf")
    if "sha256" in old:
        one, two = (np.array([case["norm"], *case["projections"]]) for case in (old, new))
        return float(np.max(np.abs(one - two)) / old["norm"])
    worst = 0.0
    for name, value in old.items():
        if isinstance(value, dict):
            worst = max(worst, difference(value, new[name]))
        elif value != new[name] and not (np.isnan(value) and np.isnan(new[name])):
            worst = max(worst, abs(value - new[name]) / max(abs(value), 1e-12))
    return worst


def main() -> int:
    """Record or check, as asked."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--record", type=Path, metavar="FOLDER")
    what.add_argument("--check", type=Path, metavar="FOLDER")
    parser.add_argument("--part", action="append", choices=("train", "audit"))
    parser.add_argument("--only", default="", help="cases whose name holds this text")
    options = parser.parse_args()
    folder = options.record or options.check
    folder.mkdir(parents=True, exist_ok=True)
    counts = {"bits": 0, "within": 0, "other": 0}
    for part in options.part or ["train", "audit"]:
        path = folder / f"{part}.json"
        known = json.loads(path.read_text()) if path.exists() else {}
        for name, numbers in cases([part]):
            if options.only not in name or (options.record and name in known):
                continue
            started = time.monotonic()
            new = json.loads(json.dumps(numbers()))
            took = f"{time.monotonic() - started:5.1f} s"
            if options.record:
                known[name] = new
                path.write_text(json.dumps(known, indent=1))
                print(f"{name:45s} {took}", flush=True)
                continue
            apart = difference(known[name], new)
            kind = "bits" if apart == 0 else "within" if apart <= TOLERANCE else "other"
            counts[kind] += 1
            print(f"{name:45s} {'same bits' if apart == 0 else f'{apart:.1e}'} {took}", flush=True)
    if options.check:
        print(
            f"{counts['bits']} with the same bits, {counts['within']} within {TOLERANCE:g}, "
            f"{counts['other']} further apart"
        )
    return 1 if counts["other"] else 0


if __name__ == "__main__":
    raise SystemExit(main())
