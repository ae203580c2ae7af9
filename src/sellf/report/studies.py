"""The report of a study: tables, trade-offs, what was selected, and how it goes over time."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from sellf.audit.origin import versions
from sellf.report import run_charts
from sellf.report.charts import Plot, Reference, Series, number, numbers, shown
from sellf.report.compare import answer, best_in, settings_of, summary
from sellf.report.configurations import Kind, kinds_of, omega_of, short
from sellf.report.page import Block, Callout, Code, Facts, Grid, Page, Paragraph, Section, render
from sellf.report.run_data import Deed, from_record
from sellf.studies import provenance
from sellf.studies.summary import names, pareto, records_of

if TYPE_CHECKING:
    from sellf.studies.records import Cell, Record, Results

PACKAGES = ("jax", "equinox", "optax", "numpy")


def report(results: "Results", command: str = "") -> str:
    """Return the report of a study as one HTML file."""
    return render(page(results, command))


def page(results: "Results", command: str = "") -> Page:
    """Return the report of a study; `command` is what was typed for it."""
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
                ["This study was shrunk: fewer steps, seeds or settings. Its figures say little."],
            )
        )
    waiting = [cell for cell in results.cells if not cell.final]
    if waiting:
        missing = [f"{cell.algorithm} on {cell.world}, {cell.notion}" for cell in waiting]
        callouts.append(Callout("Not finished", list(dict.fromkeys(missing))))
    sentences = [answer(_kinds(by_task[task])) for task in tasks if _kinds(by_task[task])]
    records = records_of(cells)
    several = len(sentences) > 1
    return Page(
        title=f"Study: {shown(results.study)}",
        kicker=f"Study: {shown(results.study)}" + (", a first look only" if results.quick else ""),
        answer=_together(by_task)
        if several
        else (sentences[0][0] if sentences else "Nothing is finished yet."),
        lead=[" ".join(some[0 if several else 1 :]) for some in sentences[:3]],
        tiles=_tiles(results, records),
        callouts=callouts,
        sections=[
            *([Section("The picture", [_trade_off(here) for here in by_task.values()])]),
            Section("The numbers", [_table(cells, n) for n in _notions(cells)] or [_nothing()]),
            *([Section(_which(by_task), [_selected(cells)])] if cells else []),
            *(_detail(task, here) for task, here in by_task.items() if _kinds(here)),
            _assumed(selected=not any(map(_repeats, by_task.values()))),
            _again(results, records, command),
        ],
    )


def _kinds(cells: Sequence["Cell"]) -> list[Kind]:
    """Return the selected configuration of each algorithm, or every one, with all its seeds."""
    named = zip(names(cells), cells, strict=True)
    return [Kind(name, list(map(from_record, c.final))) for name, c in named if c.final]


def _which(by_task: dict[tuple[str, str], list["Cell"]]) -> str:
    return "What was run" if any(map(_repeats, by_task.values())) else "What was selected"


def _notions(cells: Sequence["Cell"]) -> list[str]:
    return list(dict.fromkeys(cell.notion for cell in cells))


def _nothing() -> Paragraph:
    return Paragraph("Nothing is finished yet.")


def _together(by_task: dict[tuple[str, str], list["Cell"]]) -> str:
    """Say how often each algorithm is the fairest, over worlds and notions."""
    wins: dict[str, int] = {}
    for cells in by_task.values():
        kinds = _kinds(cells)
        if kinds:
            fairest = min(kinds, key=lambda kind: kind.mean("true")).name
            wins[fairest] = wins.get(fairest, 0) + 1
    first, *others = sorted(wins.items(), key=lambda item: -item[1])
    more = f" ({', '.join(f'{name} in {n}' for name, n in others)})" if others else ""
    return (
        f"Over {len(by_task)} combinations of world and notion, {first[0]} has the smallest true "
        f"disparity in {first[1]}{more}."
    )


def _tiles(results: "Results", records: Sequence["Record"]) -> list[tuple[str, str, str]]:
    hours = sum(record.seconds for record in records) / 3600
    worlds = {cell.world for cell in results.cells}
    algorithms = {cell.algorithm for cell in results.cells}
    time = f"{hours:.1f} h" if hours >= 1 else f"{60 * hours:.0f} min"
    return [
        ("Trainings", f"{len(records):,}", f"{time} of training in all"),
        ("Algorithms", str(len(algorithms)), ""),
        ("Worlds", str(len(worlds)), shown(", ".join(sorted(worlds)))[:60]),
    ]


def _point(record: "Record") -> tuple[float, float]:
    return record.evaluation.disparity, record.evaluation.reward


def _trade_off(cells: Sequence["Cell"]) -> Plot:
    """Return disparity against reward: what was tried, what was selected, what nothing beats."""
    world, notion = cells[0].world, cells[0].notion
    series: list[Series] = []
    gaps: list[float] = []
    rewards: list[float] = []
    called = names(cells)
    for index, cell in enumerate(cells):
        # Where nothing is selected, everything that was tried is there with all its seeds.
        if cell.grid and not _repeats(cells):
            points = [_point(record) for record in cell.grid]
            series.append(
                Series(
                    f"{cell.algorithm}: tried",
                    numbers(gap for gap, _ in points),
                    numbers(reward for _, reward in points),
                    points=True,
                    small=True,
                    labels=[_settings(cell, record) for record in cell.grid],
                    colour=index,
                    style=index,
                )
            )
    for index, cell in enumerate(cells):
        if cell.final:
            kind = _kinds([cell])[0]
            gap, reward = kind.mean("true"), kind.mean("reward")
            gaps.append(gap)
            rewards.append(reward)
            dx, dy = kind.spread("true"), kind.spread("reward")
            series.append(
                Series(
                    called[index],
                    [number(gap)],
                    [number(reward)],
                    [number(reward - dy)],
                    [number(reward + dy)],
                    [number(gap - dx)],
                    [number(gap + dx)],
                    points=True,
                    labels=[f"{called[index]}, {len(cell.final)} seeds"],
                    colour=index,
                    style=index,
                )
            )
    front = pareto(gaps, rewards)
    if front:
        line = ([gaps[i] for i in front], [rewards[i] for i in front])
        series.append(Series("Pareto front", numbers(line[0]), numbers(line[1]), colour=7, style=1))
    final = [name for name, cell in zip(called, cells, strict=True) if cell.final]
    best = ", ".join(final[i] for i in front)
    omega = omega_of(_kinds(cells) or [Kind("", [from_record(r) for c in cells for r in c.grid])])
    return Plot(
        title=f"Disparity against reward: {shown(world)}, {notion}",
        text=f"Towards the upper left is better. On the Pareto front: {best or 'nobody yet'}. "
        "Large marks: the selected settings over all seeds; small ones: what was tried.",
        x_label="true disparity",
        y_label="reward",
        series=series,
        references=[Reference(omega, f"tolerated: {omega:g}", "x")],
        x_range=(0.0, None),
        spread="± standard deviation over seeds",
    )


def _settings(cell: "Cell", record: "Record") -> str:
    varied = {
        name
        for other in cell.grid
        for name, value in other.spec.settings.items()
        if value != cell.grid[0].spec.settings.get(name)
    }
    said = [f"{n} {short(v)}" for n, v in record.spec.settings.items() if n in varied]
    return f"{cell.algorithm}: {', '.join(said) or 'the only setting'}"


def _table(cells: Sequence["Cell"], notion: str) -> Grid:
    """Return disparity and reward of every algorithm in every world; the best are marked."""
    here = [cell for cell in cells if cell.notion == notion and cell.final]
    worlds = list(dict.fromkeys(cell.world for cell in here))
    kinds = {w: {k.name: k for k in _kinds([c for c in here if c.world == w])} for w in worlds}
    algorithms = list(dict.fromkeys(name for by_name in kinds.values() for name in by_name))
    columns: dict[str, list[Any]] = {"algorithm": algorithms}
    best: set[tuple[int, str]] = set()
    for world in worlds:
        by_name = kinds[world]
        for what, label, choose in (("true", "disparity", min), ("reward", "reward", max)):
            name = label if len(worlds) == 1 else f"{shown(world)}: {label}"
            means = [by_name[a].mean(what) if a in by_name else float("nan") for a in algorithms]
            columns[name] = means
            columns[f"± {name}"] = [
                by_name[a].spread(what) if a in by_name else float("nan") for a in algorithms
            ]
            best |= best_in(means, name, choose)
    return Grid(
        columns,
        f"{notion.capitalize()}: true disparity and reward of the selected settings",
        "Mean and standard deviation over seeds; a star marks the smallest disparity and the "
        "largest reward in each world.",
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


def _detail(task: tuple[str, str], cells: Sequence["Cell"]) -> Section:
    kinds = _kinds(cells)
    blocks: list[Block] = [
        *run_charts.over_deployment(kinds, kinds),
        *run_charts.views(kinds),
        summary(kinds),
    ]
    return Section(f"{shown(task[0])}, {task[1]}, over deployment", blocks)


def _repeats(cells: Sequence["Cell"]) -> bool:
    """Return whether an algorithm is there several times: nothing was selected then."""
    return len({cell.algorithm for cell in cells}) < len(cells)


def _assumed(selected: bool) -> Section:
    how = (
        "Settings were selected from what was tried with one seed, and then run with all seeds."
        if selected
        else "Every configuration was run with all seeds; none was selected."
    )
    return Section(
        "What was assumed",
        [
            Paragraph(
                "All of this happens in simulated worlds, whose hidden outcomes are known to this "
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
        ("Versions", ", ".join(f"{k} {v}" for k, v in versions(PACKAGES).items())),
    ]
    blocks: list[Block] = [Code(typed), Facts(facts)]
    deeds: list[Deed] = [from_record(cell.final[0]) for cell in results.cells if cell.final]
    if deeds:
        first = [deed for deed in deeds if deed.task == deeds[0].task]
        blocks.append(settings_of([deed for kind in kinds_of(first) for deed in kind.deeds]))
    return Section("How to get this again", blocks)


def _fingerprint(records: Sequence["Record"]) -> str:
    import hashlib

    total = hashlib.sha256()
    for record in records:
        total.update(repr(record.spec).encode("utf-8", "surrogatepass"))
        total.update(np.ascontiguousarray(record.evaluation.rewards).tobytes())
        for _, values in sorted(record.evaluation.disparities.items()):
            total.update(np.ascontiguousarray(values).tobytes())
    return total.hexdigest()
