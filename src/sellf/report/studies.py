"""The report of a study: tables, trade-offs, selected settings, and results over time."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from sellf import palette
from sellf.audit.origin import versions
from sellf.report import run_charts
from sellf.report.charts import Plot, Reference, Series, number, numbers, shown
from sellf.report.compare import answer, settings_of, summary
from sellf.report.configurations import OMEGA, Configuration, configurations_of
from sellf.report.page import Block, Callout, Code, Facts, Grid, Page, Paragraph, Section, render
from sellf.report.run_data import Run, from_record
from sellf.studies import provenance
from sellf.studies.records import Results
from sellf.studies.statistics import INTERVAL, pareto
from sellf.studies.summary import Row, format_settings, names, records_of
from sellf.studies.summary import rows as rows_of

if TYPE_CHECKING:
    from sellf.studies.collection import Collection
    from sellf.studies.frontiers import Curve
    from sellf.studies.records import Cell, Record

PACKAGES = ("jax", "equinox", "numpy")


def report(results: "Results", command: str = "") -> str:
    """Return the report of a study as one HTML file."""
    return render(page(results, command))


def page(results: "Results", command: str = "") -> Page:
    """Return the report of a study; `command` is the command that makes it."""
    cells = [cell for cell in results.cells if cell.final or cell.grid]
    tasks = list(dict.fromkeys((cell.world, cell.notion) for cell in cells))
    by_task = {
        task: [cell for cell in cells if (cell.world, cell.notion) == task] for task in tasks
    }
    callouts = []
    if results.quick:
        callouts.append(
            Callout(
                "A first look only",
                ["The study was reduced: fewer steps, seeds or settings. Its figures say little."],
            )
        )
    waiting = [cell for cell in results.cells if not cell.final]
    if waiting:
        missing = [f"{cell.algorithm} on {cell.world}, {cell.notion}" for cell in waiting]
        callouts.append(Callout("Not finished", list(dict.fromkeys(missing))))
    configured = {task: _configurations(here) for task, here in by_task.items()}
    sentences = [answer(found) for found in configured.values() if found]
    records, rows = records_of(cells), rows_of(results)
    several = len(sentences) > 1
    return Page(
        title=f"Study: {shown(results.study)}",
        kicker=f"Study: {shown(results.study)}" + (", a first look only" if results.quick else ""),
        answer=_together(configured)
        if several
        else (sentences[0][0] if sentences else "Nothing is finished yet."),
        lead=[" ".join(some[0 if several else 1 :]) for some in sentences[:3]],
        tiles=_tiles(results, records),
        callouts=callouts,
        sections=[
            Section("The picture", _trade_offs(results, rows, by_task)),
            Section("The numbers", [_table(rows, n) for n in _notions(cells)] or [_nothing()]),
            *([Section(_which(by_task), [_selected(cells)])] if cells else []),
            *(_detail(task, found) for task, found in configured.items() if found),
            _assumed(selected=not any(map(_repeats, by_task.values()))),
            _again(results, records, command),
        ],
    )


def report_of_all(several: "Collection", found: Sequence["Results"], command: str) -> str:
    """Return the report of several studies as one HTML file: trade-offs and tables of each."""
    sections, waiting, configured = [], [], {}
    for study, results in zip(several.studies, found, strict=True):
        cells = [cell for cell in results.cells if cell.final or cell.grid]
        waiting += [
            f"{study.name}: {cell.algorithm} on {cell.world}, {cell.notion}"
            for cell in results.cells
            if not cell.final
        ]
        if not cells:
            continue
        rows = rows_of(results)
        by_task: dict[tuple[str, str], list[Cell]] = {}
        for cell in cells:
            by_task.setdefault((cell.world, cell.notion), []).append(cell)
        configured |= {(study.name, *task): _configurations(here) for task, here in by_task.items()}
        blocks: list[Block] = [Paragraph(study.summary)] if study.summary else []
        blocks += _trade_offs(results, rows, by_task)
        blocks += [_table(rows, notion) for notion in _notions(cells)]
        sections.append(Section(f"Study: {shown(study.name)}", blocks))
    records = [record for results in found for record in records_of(results.cells)]
    unique = list({record.spec.identity: record for record in records}.values())
    everything = Results(several.name, found[0].quick, [c for one in found for c in one.cells])
    return render(
        Page(
            title=f"Studies: {shown(several.name)}",
            kicker=f"{len(found)} studies" + (", a first look only" if found[0].quick else ""),
            answer=_together(configured) if configured else "Nothing is finished yet.",
            tiles=_tiles(everything, unique),
            callouts=[Callout("Not finished", list(dict.fromkeys(waiting)))] if waiting else [],
            sections=[
                *sections,
                _assumed(selected=True),
                Section(
                    "How to reproduce this",
                    [Code(command), Facts([("Versions", _versions())])],
                ),
            ],
        )
    )


def _versions() -> str:
    return ", ".join(f"{name} {version}" for name, version in versions(PACKAGES).items())


def _configurations(cells: Sequence["Cell"]) -> list[Configuration]:
    """Return the selected configuration of each algorithm, or all of them, with all seeds."""
    named = zip(names(cells), cells, strict=True)
    return [Configuration(name, list(map(from_record, c.final))) for name, c in named if c.final]


def _which(by_task: dict[tuple[str, str], list["Cell"]]) -> str:
    return "What was run" if any(map(_repeats, by_task.values())) else "What was selected"


def _notions(cells: Sequence["Cell"]) -> list[str]:
    return list(dict.fromkeys(cell.notion for cell in cells))


def _nothing() -> Paragraph:
    return Paragraph("Nothing is finished yet.")


def _together(configured: Mapping[Any, list[Configuration]]) -> str:
    """Return a sentence on how often each algorithm is the fairest, over worlds and notions."""
    wins: dict[str, int] = {}
    for found in filter(None, configured.values()):
        fairest = min(found, key=lambda one: one.mean("true")).name
        wins[fairest] = wins.get(fairest, 0) + 1
    first, *others = sorted(wins.items(), key=lambda item: -item[1])
    more = f" ({', '.join(f'{name} in {n}' for name, n in others)})" if others else ""
    return (
        f"Over {len(configured)} combinations of world and notion, {first[0]} has the smallest "
        f"true disparity in {first[1]}{more}."
    )


def _tiles(results: "Results", records: Sequence["Record"]) -> list[tuple[str, str, str]]:
    hours = sum(record.seconds for record in records) / 3600
    worlds = {cell.world for cell in results.cells}
    algorithms = {cell.algorithm for cell in results.cells}
    time = f"{hours:.1f} h" if hours >= 1 else f"{60 * hours:.0f} min"
    return [
        ("Training runs", f"{len(records):,}", f"{time} of training in all"),
        ("Algorithms", str(len(algorithms)), ""),
        ("Worlds", str(len(worlds)), shown(", ".join(sorted(worlds)))[:60]),
    ]


def _trade_offs(
    results: "Results", rows: Sequence[Row], by_task: dict[tuple[str, str], list["Cell"]]
) -> list[Block]:
    return [_trade_off(rows, own, results.frontier(own[0])) for own in by_task.values()]


def _trade_off(rows: Sequence[Row], cells: Sequence["Cell"], curve: "Curve | None" = None) -> Plot:
    """Return the chart of disparity against reward: tried and selected settings, and fronts."""
    called = dict(zip(map(id, cells), names(cells), strict=True))
    places = palette.places_of([cell.algorithm for cell in cells])
    look = {id(cell): place for cell, place in zip(cells, places, strict=True)}
    # If nothing is selected, all settings that were tried are shown with all their seeds.
    tried = [] if _repeats(cells) else cells
    rows = [row for row in rows if id(row.cell) in called]
    series = [_tried(look[id(cell)], called[id(cell)], cell) for cell in tried if cell.grid]
    series += [_chosen(look[id(row.cell)], called[id(row.cell)], row) for row in rows]
    points = [(row.disparity.mean, row.reward.mean) for row in rows]
    front = pareto([gap for gap, _ in points], [reward for _, reward in points])
    if front:
        gaps, rewards = (numbers(points[i][axis] for i in front) for axis in (0, 1))
        how: dict[str, Any] = {"colour": palette.GREY, "style": palette.PARETO}
        series.append(Series("Pareto front", gaps, rewards, step=True, **how))
    if curve is not None:
        name = "frontier: the best plans in the true law"
        how: dict[str, Any] = {"colour": palette.GREY, "style": palette.FRONTIER}
        series.append(Series(name, list(curve.disparity), list(curve.reward), **how))
    best = ", ".join(called[id(rows[i].cell)] for i in front)
    specs = [record.spec for cell in cells for record in (*cell.final, *cell.grid)]
    omega = next((spec.omega for spec in specs if spec.omega is not None), OMEGA)
    bars = f" Bars: {INTERVAL}." if any(row.seeds > 1 for row in rows) else ""
    return Plot(
        title=f"Disparity against reward: {shown(cells[0].world)}, {cells[0].notion}",
        text=f"Towards the upper left is better. On the Pareto front: {best or 'none yet'}. "
        f"Large marks: selected settings over all seeds; small ones: settings tried.{bars}",
        x_label="true disparity",
        y_label="reward",
        series=series,
        references=[Reference(omega, f"tolerated: {omega:g}", "x")],
        x_range=(0.0, None),
        spread=INTERVAL if bars else "",
    )


def _tried(look: int, name: str, cell: "Cell") -> Series:
    found = [record.evaluation for record in cell.grid]
    return Series(
        f"{name}: tried",
        numbers(one.disparity for one in found),
        numbers(one.reward for one in found),
        points=True,
        small=True,
        labels=[_settings(cell, record) for record in cell.grid],
        colour=look,
        style=look,
        beside=name,
    )


def _chosen(look: int, name: str, row: Row) -> Series:
    gap, reward = row.disparity, row.reward
    dx, dy = gap.half or 0.0, reward.half or 0.0
    return Series(
        name,
        [number(gap.mean)],
        [number(reward.mean)],
        [number(reward.mean - dy)],
        [number(reward.mean + dy)],
        [number(gap.mean - dx)],
        [number(gap.mean + dx)],
        points=True,
        labels=[f"{name}, {row.seeds} seeds"],
        colour=look,
        style=look,
    )


def _settings(cell: "Cell", record: "Record") -> str:
    usual = cell.grid[0].spec.hyperparameters
    varied = {
        name
        for other in cell.grid
        for name, value in other.spec.hyperparameters.items()
        if value != usual.get(name)
    }
    own = {n: v for n, v in record.spec.hyperparameters.items() if n in varied}
    return f"{cell.algorithm}: {format_settings(own) or 'the only setting'}"


def _table(rows: Sequence[Row], notion: str) -> Grid:
    """Return the table of disparity and reward by algorithm and world, with the best marked."""
    here = [row for row in rows if row.cell.notion == notion]
    worlds = list(dict.fromkeys(row.cell.world for row in here))
    found: dict[str, dict[str, Row]] = {}
    for world in worlds:
        mine = [row for row in here if row.cell.world == world]
        for name, row in zip(names([row.cell for row in mine]), mine, strict=True):
            found.setdefault(name, {})[world] = row
    columns: dict[str, list[Any]] = {"algorithm": list(found)}
    best: set[tuple[int, str]] = set()
    for world in worlds:
        in_world = [by_world.get(world) for by_world in found.values()]
        for label in ("disparity", "reward"):
            name = label if len(worlds) == 1 else f"{shown(world)}: {label}"
            figures = [None if row is None else getattr(row, label) for row in in_world]
            columns[name] = [None if figure is None else figure.mean for figure in figures]
            columns[f"± {name}"] = [None if figure is None else figure.half for figure in figures]
            if label == "reward" and any(row and row.regret is not None for row in in_world):
                regret = name.removesuffix(label) + "regret"
                columns[regret] = [None if row is None else row.regret for row in in_world]
            if sum(row is not None for row in in_world) > 1:
                best |= {
                    (i, name) for i, r in enumerate(in_world) if r and getattr(r, f"best_{label}")
                }
    return Grid(
        columns,
        f"{notion.capitalize()}: true disparity and reward of the selected settings",
        f"±: half of the {INTERVAL}; a star marks the smallest disparity and the largest reward "
        "in each world.",
        frozenset(best),
    )


def _selected(cells: Sequence["Cell"]) -> Grid:
    chosen = list(dict.fromkeys(name for cell in cells for name in cell.chosen))
    return Grid(
        {
            "algorithm": [cell.algorithm for cell in cells],
            "world": [cell.world for cell in cells],
            "notion": [cell.notion for cell in cells],
            "tried": [len(cell.grid) for cell in cells],
            "seeds": [len(cell.final) for cell in cells],
            **{name: [cell.chosen.get(name) for cell in cells] for name in chosen},
        },
        "Selected hyperparameters",
        "" if chosen else "Nothing was varied.",
    )


def _detail(task: tuple[str, str], configurations: Sequence[Configuration]) -> Section:
    blocks: list[Block] = [
        *run_charts.over_deployment(configurations, configurations),
        *run_charts.views(configurations),
        summary(configurations),
    ]
    return Section(f"{shown(task[0])}, {task[1]}, over deployment", blocks)


def _repeats(cells: Sequence["Cell"]) -> bool:
    """Return whether an algorithm has several cells, which means that nothing was selected."""
    return len({cell.algorithm for cell in cells}) < len(cells)


def _assumed(selected: bool) -> Section:
    how = (
        "Settings were selected from runs with one seed, and then run with all seeds."
        if selected
        else "Every configuration was run with all seeds; none was selected."
    )
    return Section(
        "What was assumed",
        [
            Paragraph(
                "All results are from simulated worlds, whose hidden outcomes are known to this "
                f"report and not to the algorithms that may not see them. {how}"
            )
        ],
    )


def _again(results: "Results", records: Sequence["Record"], command: str) -> Section:
    typed = command or shown(provenance.command(results))
    steps = sorted({record.spec.steps for record in records})
    seeds = sorted({record.spec.seed for cell in results.cells for record in cell.final})
    facts = [
        ("Steps", ", ".join(f"{n:,}" for n in steps)),
        ("Seeds", ", ".join(map(str, seeds))),
        ("Fingerprint", f"SHA-256 of all figures of all runs: {_fingerprint(records)}"),
        ("Versions", _versions()),
    ]
    blocks: list[Block] = [Code(typed), Facts(facts)]
    runs: list[Run] = [from_record(cell.final[0]) for cell in results.cells if cell.final]
    if runs:
        first = [run for run in runs if run.task == runs[0].task]
        blocks.append(
            settings_of(
                [run for configuration in configurations_of(first) for run in configuration.runs]
            )
        )
    return Section("How to reproduce this", blocks)


def _fingerprint(records: Sequence["Record"]) -> str:
    import hashlib

    total = hashlib.sha256()
    for record in records:
        total.update(record.spec.identity.encode())
        total.update(np.ascontiguousarray(record.evaluation.rewards).tobytes())
        for _, values in sorted(record.evaluation.disparities.items()):
            total.update(np.ascontiguousarray(values).tobytes())
    return total.hexdigest()
