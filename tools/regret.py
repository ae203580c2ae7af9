"""Regret to the frontier of every algorithm, world and notion: a table and a figure.

    python tools/regret.py --frontiers      # compute the frontiers that are missing (minutes), too
    python tools/regret.py                  # from docs/results alone, in seconds

Reads the studies' tables (docs/results/STUDY/table.csv) and docs/results/frontiers.json, and writes
docs/results/regret/: table.md, table.csv, regret.svg and regret.png. Where several studies have the
same algorithm in the same world, the first of SOURCES counts. What no study has is marked.

Regret is the column of that name in studies' tables: how much more the best policy with the same
exact disparity (averaged over time) earns, between plans on a straight line.
"""

import argparse
import csv
import json
import sys
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from sellf.studies.frontiers import Curve, computed
from sellf.studies.plots import style
from sellf.training.spec import WorldSpec

RESULTS = Path("docs/results")
WORLDS = ("lending", "recidivism", "school")
NOTIONS = ("opportunity", "accuracy", "qualification")
CELLS = tuple((world, notion) for world in WORLDS for notion in NOTIONS)
SOURCES = (
    *("sellf-plan", "paper-main", "paper-extra", "paper-relu"),
    *("earlier/paper-extra", "direct"),
)
"""Studies with algorithms as they are by default, or as selected; the newest first."""
ALGORITHMS = (
    *("ppo", "pocar", "pocar-oracle", "focops", "focops (imputed)", "elbert", "ppo-lagrangian"),
    *("pid-lagrangian", "cup", "sellf", "sellf (increase)", "sellf-semi", "sellf-relu"),
    *("sellf-direct", "sellf-plan"),
)


class Point(NamedTuple):
    """An algorithm's result in one world, by one notion."""

    world: str
    notion: str
    algorithm: str
    study: str
    seeds: int
    steps: int
    exact: float
    reward: float
    regret: float | None
    """None where the frontier begins at a larger disparity ..."""
    planned: bool
    """... or has not been computed."""


def frontiers(path: Path, *, compute: bool) -> dict[tuple[str, str], Curve]:
    """Return the frontiers that are known; compute what is missing, if asked to."""
    known = json.loads(path.read_text()) if path.is_file() else {}
    for world, notion in CELLS:
        if f"{world}, {notion}" in known or not compute:
            continue
        print(f"The frontier of {world}, {notion} ...", file=sys.stderr, flush=True)
        curve = computed(WorldSpec(world), notion)
        rounded = {
            "disparity": [round(x, 6) for x in curve.disparity],
            "reward": [round(x, 3) for x in curve.reward],
        }
        known[f"{world}, {notion}"] = rounded
        path.write_text(json.dumps(known, indent=1, sort_keys=True) + "\n")
    named = {f"{world}, {notion}": (world, notion) for world, notion in CELLS}
    return {
        named[name]: Curve(tuple(each["disparity"]), tuple(each["reward"]))
        for name, each in known.items()
    }


def points(folder: Path, curves: dict[tuple[str, str], Curve]) -> list[Point]:
    """Return what the studies' tables hold, each result from the first study that has it."""
    found: dict[tuple[str, str, str], Point] = {}
    for study in SOURCES:
        path = folder / study / "table.csv"
        lines = path.read_text().splitlines() if path.is_file() else []
        for row in csv.DictReader(line for line in lines if not line.startswith("#")):
            key = row["world"], row["notion"], row["algorithm"]
            if key in found or key[:2] not in CELLS or row["world_settings"] != "{}":
                continue
            # A sweep over omega is one algorithm several times; a result is the first of them.
            exact, reward = float(row["exact"]), float(row["reward"])
            curve = curves.get(key[:2])
            best = None if curve is None or np.isnan(exact) else curve.reward_at(exact)
            regret = None if best is None else best - reward
            numbers = int(row["seeds"]), int(row["steps"])
            found[key] = Point(*key, study, *numbers, exact, reward, regret, curve is not None)
    order = {name: place for place, name in enumerate(ALGORITHMS)}
    strange = len(order)
    return sorted(
        found.values(),
        key=lambda p: (CELLS.index((p.world, p.notion)), order.get(p.algorithm, strange)),
    )


def table(given: list[Point]) -> str:
    """Return regret and disparity of all algorithms, in Markdown; one table for each world."""
    by_key = {(p.world, p.notion, p.algorithm): p for p in given}
    studies = [study for study in SOURCES if any(p.study == study for p in given)]
    parts = []
    for world in WORLDS:
        lines = [
            f"| {world} | {' | '.join(NOTIONS)} |",
            f"| --- |{' --- |' * len(NOTIONS)}",
        ]
        for name in ALGORITHMS:
            cells = [_cell(by_key.get((world, notion, name)), studies) for notion in NOTIONS]
            if any(cell != MISSING for cell in cells):
                lines.append(f"| {name} | {' | '.join(cells)} |")
        absent = [
            name
            for name in ALGORITHMS
            if all((world, notion, name) not in by_key for notion in NOTIONS)
        ]
        if absent:
            lines.append(f"\nNot run in {world}: {', '.join(absent)}.")
        parts.append("\n".join(lines))
    legend = "; ".join(f"[{place + 1}] `{study}`" for place, study in enumerate(studies))
    parts.append(
        "Regret, and in brackets the exact disparity averaged over time. \\*: below every "
        f"disparity that the frontier was computed for. {MISSING}: not run. No frontier: it has "
        "not been computed (`python tools/regret.py --frontiers`). From the studies "
        f"{legend}."
    )
    return "\n\n".join(parts) + "\n"


MISSING = "missing"


def _cell(point: Point | None, studies: list[str]) -> str:
    if point is None:
        return MISSING
    source = f" [{studies.index(point.study) + 1}]"
    if np.isnan(point.exact):
        return f"undefined{source}"
    regret = "\\*" if point.planned else "no frontier"
    if point.regret is not None:
        regret = f"{point.regret:,.1f}"
    # A rounded 0 has no sign.
    return f"{'0.0' if regret == '-0.0' else regret} ({point.exact:.3f}){source}"


def draw(given: list[Point], curves: dict[tuple[str, str], Curve]) -> Any:
    """Draw the frontiers with the algorithms below them."""
    figure = style.new(11, 9.5)
    axes = figure.subplots(len(WORLDS), len(NOTIONS))
    handles: dict[str, Any] = {}
    # All at once: variants of one algorithm have looks of their own only beside each other.
    looks = dict(zip(ALGORITHMS, style.looks(ALGORITHMS), strict=True))
    for (world, notion), axis in zip(CELLS, axes.ravel(), strict=True):
        own = [p for p in given if (p.world, p.notion) == (world, notion)]
        axis.set(title=f"{world}, {notion}", xlabel="exact disparity", ylabel="reward")
        curve = curves.get((world, notion))
        if curve is not None:
            (handles["the frontier"],) = axis.plot(
                curve.disparity, curve.reward, color="#BBBBBB", lw=4, zorder=0
            )
        for point in own:
            how = looks[point.algorithm]
            (handles[point.algorithm],) = axis.plot(
                point.exact, point.reward, how.marker, color=how.color, ls="none"
            )
        _limit(axis, own, curve)
        axis.locator_params(axis="x", nbins=5)
    order = ["the frontier", *ALGORITHMS]
    named = [name for name in order if name in handles]
    figure.legend(
        [handles[name] for name in named], named, loc="outside upper center", ncols=6, fontsize=9
    )
    return figure


def _limit(axis: Any, own: list[Point], curve: Curve | None) -> None:
    """Show the algorithms; of a frontier what is near them."""
    rewards = [p.reward for p in own] + ([curve.reward[-1]] if curve is not None else [])
    gaps = [p.exact for p in own if not np.isnan(p.exact)]
    if not rewards or not gaps:
        return
    room = 0.08 * (max(rewards) - min(rewards)) + 1
    axis.set_ylim(min(rewards) - room, max(rewards) + room)
    low = min(gaps) if min(gaps) > 0.1 else 0.0
    axis.set_xlim(low - 0.05 * (max(gaps) - low), max(gaps) + 0.1 * (max(gaps) - low))


def write(folder: Path, given: list[Point], curves: dict[tuple[str, str], Curve]) -> None:
    """Write the table and the figure."""
    folder.mkdir(exist_ok=True)
    with (folder / "table.csv").open("w", newline="") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(Point._fields)
        rows.writerows(["" if value is None else value for value in point] for point in given)
    command = "`python tools/regret.py`"
    head = f"# Regret to the frontier\n\nWritten by {command} from the tables of the studies.\n\n"
    (folder / "table.md").write_text(head + table(given))
    with style.drawing():
        figure = draw(given, curves)
        for kind in ("svg", "png"):
            (folder / f"regret.{kind}").write_bytes(style.to_bytes(figure, kind))


def main(arguments: list[str] | None = None) -> int:
    """Write table and figure; print the table."""
    parser = argparse.ArgumentParser(description="Regret to the frontier.")
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--frontiers", action="store_true", help="compute those that are missing")
    options = parser.parse_args(arguments)
    curves = frontiers(options.results / "frontiers.json", compute=options.frontiers)
    found = points(options.results, curves)
    write(options.results / "regret", found, curves)
    print(table(found))
    missing = [f"{world}, {notion}" for world, notion in CELLS if (world, notion) not in curves]
    if missing:
        print(f"Without a frontier (--frontiers): {'; '.join(missing)}.", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
