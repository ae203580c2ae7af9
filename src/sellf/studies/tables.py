"""A study's results as tables: Markdown, LaTeX and CSV, and for the terminal."""

import csv
import io
import json
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from sellf import files
from sellf.studies import paper
from sellf.studies.provenance import QUICK, facts
from sellf.studies.records import Results
from sellf.studies.statistics import Estimate
from sellf.studies.summary import (
    STEPS,
    Group,
    Row,
    format_settings,
    records_of,
    rows,
    task_name,
    times,
    varied,
)

LEGEND = (
    "Mean ± half of the 95% interval over training seeds (standard deviation over deployments). "
    "Disparity: |Delta| over the window of decisions, averaged over time, with everyone's label. "
    "Exact: the same of the whole population under the policy, without a window. Saw: the "
    "disparity in the view that the algorithm itself has. Regret: what the best policy of the same "
    "exact disparity earns more (`sellf study frontier` computes it). Best of each task in bold. "
    "Accepted: the share of a group's applicants; qualified: P(Y = 1) in the population, from "
    "first to last."
)
VIEWS = {"true": "true", "accepted": "accepted only", "imputed": "imputed"}
HEAD = ("algorithm", "disparity", "reward", "regret", "exact", "saw", "selected",
        "paper's disparity", "paper's reward", "difference")  # fmt: skip
GROUP = ("accepted", "qualified")
SHORT = [name for name in HEAD if name not in ("exact", "saw", HEAD[-1])]
"""The columns that are shown in a terminal."""
TIMES = ("algorithm", "world", f"minutes for {STEPS:,} steps", "runs", "paper", "times faster")


def write(results: Results, folder: Path) -> list[Path]:
    """Write the tables of a study to a folder, and return the files.

    `table.md` and `table.tex` are for reading; `table.csv` has one row per cell, `grid.csv` one per
    run, and `timing.csv` one per algorithm and world.
    """
    folder.mkdir(parents=True, exist_ok=True)
    contents = {
        "table.md": markdown(results),
        "table.tex": latex(results),
        "table.csv": _csv(results, cells(results)),
        "grid.csv": _csv(results, grid(results)),
        "timing.csv": _csv(results, timing(results)),
    }
    for name, content in contents.items():
        files.write(folder / name, content.encode())
    return [folder / name for name in contents]


def to_rich(results: Results) -> Any:
    """Return a short version of the results that rich can print."""
    from rich.console import Group
    from rich.markup import escape
    from rich.table import Table

    parts: list[Any] = [QUICK] if results.quick else []
    found = rows(results)
    for where in dict.fromkeys(row.task for row in found):
        here = [row for row in found if row.task == where]
        lines = [_cells(row, "[bold]{}[/bold]".format, escape) for row in here]
        columns: dict[str, Sequence[str]] = dict(zip(HEAD, zip(*lines, strict=True), strict=True))
        table = Table(title=where, title_justify="left")
        names = _informative(here, columns)
        for name in names:
            left = name in ("algorithm", "selected")
            table.add_column(name, justify="left" if left else "right", no_wrap=name == "algorithm")
        for entries in zip(*(columns[name] for name in names), strict=True):
            table.add_row(*entries)
        parts.append(table)
    return Group(*parts, *map(escape, _missing(results)))


def _informative(found: list[Row], columns: Mapping[str, Sequence[str]]) -> list[str]:
    """Return the columns for a terminal: not those without entries, nor a paper of other runs."""
    comparable = any(row.comparable for row in found)
    return [
        name
        for name in SHORT
        if set(columns[name]) != {"-"} and (comparable or not name.startswith("paper's"))
    ]


def markdown(results: Results) -> str:
    """Return the tables as one page of Markdown."""
    found = rows(results)
    parts = [f"# {_md(results.study)}", *_facts_md(results), LEGEND]
    for where in dict.fromkeys(row.task for row in found):
        lines = [_cells(row, "**{}**".format, _md) for row in found if row.task == where]
        parts += [f"## {_md(where)}", _md_table(HEAD, lines)]
        parts += [_md_table(*_groups([row for row in found if row.task == where]))]
        parts += [f"- {_md(text)}" for row in found if row.task == where for text in row.sentences]
    parts += [_md(text) for text in _missing(results)]
    parts += [
        "## Computing times",
        "Of training alone, one run's share where several were trained together; median over runs.",
        _md_table(TIMES, _times(results, _md)),
        f"The paper's figures: {_md(paper.source())}.",
    ]
    # Points of one list stay together.
    return re.sub(r"(?m)^(- .*)\n\n(?=- )", r"\1\n", "\n\n".join(parts)) + "\n"


def latex(results: Results) -> str:
    """Return the tables in LaTeX, for inclusion in a document; they need no package."""
    found = rows(results)
    parts = [f"% {name}: {value}" for name, value in facts(results).items()]
    for where in dict.fromkeys(row.task for row in found):
        lines = [_cells(row, "\\textbf{{{}}}".format, _tex) for row in found if row.task == where]
        parts.append(_tex_table(results, where, HEAD, lines))
    parts.append(_tex_table(results, "Computing times", TIMES, _times(results, _tex)))
    return "\n".join(parts) + "\n"


def cells(results: Results) -> list[dict[str, Any]]:
    """Return one row of plain values per cell, with all figures unrounded."""
    lines = []
    for row in rows(results):
        spec = row.cell.final[0].spec
        line = {
            "world": row.cell.world,
            "world_settings": _json(spec.world.settings),
            "notion": row.cell.notion,
            "algorithm": row.cell.algorithm,
            "selected": _json(row.cell.chosen),
            "seeds": row.seeds,
            "steps": spec.steps,
            "deployments": spec.deployments,
            "view": row.view,
        }
        named = {"disparity": row.disparity, "exact": row.exact, "seen": row.seen,
                 "reward": row.reward}  # fmt: skip
        for name, figure in named.items():
            line |= {name: figure.mean, f"{name}_half": figure.half, f"{name}_std": figure.std}
        line["regret"] = row.regret
        for name in Group._fields:
            line[name] = _json({key: getattr(one, name) for key, one in row.by_group.items()})
        published = row.published._asdict() if row.published else {}
        line |= {f"paper_{name}": published.get(name) for name in paper.Published._fields}
        for name in ("disparity", "reward"):
            theirs = published.get(name)
            line[f"difference_{name}"] = None if theirs is None else line[name] - theirs
        lines.append(line | {"remark": " ".join(row.sentences)})
    return lines


def grid(results: Results) -> list[dict[str, Any]]:
    """Return one row of plain values per run, with a column for every varied setting."""
    names = varied(results.cells)
    lines = []
    for cell in results.cells:
        final = {record.spec.identity for record in cell.final}
        for run in records_of([cell]):
            spec, result = run.spec, run.evaluation.summary()
            lines.append(
                {
                    "world": spec.world.name,
                    "world_settings": _json(spec.world.settings),
                    "notion": spec.notion,
                    "algorithm": cell.algorithm,
                    "selected": spec.identity in final,
                    "seed": spec.seed,
                    "steps": spec.steps,
                    "deployments": spec.deployments,
                    **{name: spec.hyperparameters.get(name) for name in names},
                    **{name: v for name, v in result.items() if v is None or isinstance(v, float)},
                    "seconds": run.seconds,
                    "settings": _json(spec.hyperparameters),
                }
            )
    return lines


def timing(results: Results) -> list[dict[str, Any]]:
    """Return one row of plain values per algorithm and world."""
    return [
        {
            "world": time.world,
            "algorithm": time.algorithm,
            "minutes": time.minutes,
            "runs": time.runs,
            "paper_minutes": time.published,
            "times_faster": time.ratio,
        }
        for time in times(results)
    ]


def _cells(row: Row, bold: Callable[[str], str], escape: Callable[[str], str]) -> list[str]:
    """Return the cells of a row in the order of HEAD."""
    gap, reward = _figure(row.disparity, 3), _figure(row.reward, 1)
    theirs, differs = row.published, "-"
    if theirs is not None:
        differs = (
            f"{row.disparity.mean - theirs.disparity:+.3f}, {row.reward.mean - theirs.reward:+,.1f}"
        )
    return [
        escape(row.cell.algorithm),
        bold(escape(gap)) if row.best_disparity else escape(gap),
        bold(escape(reward)) if row.best_reward else escape(reward),
        "-" if row.regret is None else f"{row.regret:,.1f}",
        escape(_figure(row.exact, 3)),
        escape(f"{row.seen._replace(half=None).text(3)} {VIEWS[row.view]}"),
        escape(format_settings(row.cell.chosen) or "-"),
        escape(f"{theirs.disparity:.2f} ({theirs.disparity_std:.2f})" if theirs else "-"),
        escape(f"{theirs.reward:,.1f} ({theirs.reward_std:.1f})" if theirs else "-"),
        escape(differs),
    ]


def _groups(found: list[Row]) -> tuple[tuple[str, ...], list[list[str]]]:
    """Return the heading and the rows of the table of groups in a task."""
    names = list(found[0].by_group)
    head = ("algorithm", "selected", *(_md(f"{what}, {name}") for what in GROUP for name in names))
    lines = []
    for row in found:
        groups = row.by_group.values()
        moved = [f"{g.qualified_at_first:.3f} to {g.qualified_at_last:.3f}" for g in groups]
        name = [_md(row.cell.algorithm), _md(format_settings(row.cell.chosen) or "-")]
        lines.append([*name, *(f"{g.acceptance:.3f}" for g in groups), *moved])
    return head, lines


def _times(results: Results, escape: Callable[[str], str]) -> list[list[str]]:
    return [
        [
            escape(time.algorithm),
            escape(time.world),
            f"{time.minutes:.3g}",
            str(time.runs),
            "-" if time.published is None else f"{time.published:.2f}",
            "-" if time.ratio is None else f"{time.ratio:.3g}",
        ]
        for time in times(results)
    ]


def _figure(figure: Estimate, digits: int) -> str:
    return f"{figure.text(digits)} ({figure.std:,.{digits}f})"


def _missing(results: Results) -> list[str]:
    """Return a sentence that names the cells without finished runs."""
    names = [f"{cell.algorithm} ({task_name(cell)})" for cell in results.cells if not cell.final]
    return [f"Not finished yet: {'; '.join(names)}."] if names else []


def _facts_md(results: Results) -> list[str]:
    return [f"- {name}: {_md(value)}" for name, value in facts(results).items()]


def _md_table(head: tuple[str, ...], lines: list[list[str]]) -> str:
    every = [[*head], ["---"] * len(head), *lines]
    return "\n".join(f"| {' | '.join(line)} |" for line in every)


def _md(text: str) -> str:
    """Return text with the special characters of Markdown escaped."""
    return re.sub(r"([\\`*_|<>\[\]])", r"\\\1", text)


def _tex_table(results: Results, title: str, head: tuple[str, ...], lines: list[list[str]]) -> str:
    note = f" {QUICK}" if results.quick else ""
    every = [[_tex(name) for name in head], *lines]
    body = [f"  {' & '.join(line)} \\\\" for line in every]
    body.insert(1, "  \\hline")
    return "\n".join(
        [
            "\\begin{table}",
            "\\centering",
            f"\\caption{{{_tex(f'{results.study}: {title}.{note}')}}}",
            f"\\begin{{tabular}}{{{'l' * len(head)}}}",
            "  \\hline",
            *body,
            "  \\hline",
            "\\end{tabular}",
            "\\end{table}",
        ]
    )


_TEX = {
    "\\": "\\textbackslash{}",
    "~": "\\textasciitilde{}",
    "^": "\\textasciicircum{}",
    "±": "$\\pm$",
    "<": "$<$",
    ">": "$>$",
    "|": "$|$",
} | {sign: f"\\{sign}" for sign in "&%$#_{}"}


def _tex(text: str) -> str:
    return "".join(_TEX.get(sign, sign) for sign in text)


def _csv(results: Results, lines: list[dict[str, Any]]) -> str:
    """Return rows as CSV, after comments that state their origin."""
    out = io.StringIO()
    for name, value in facts(results).items():
        out.write(f"# {name}: {value}\n")
    whole = [{"study": results.study, "quick": results.quick, **line} for line in lines]
    if whole:
        writer = csv.DictWriter(out, list(whole[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(whole)
    return out.getvalue()


def _json(settings: dict[str, Any]) -> str:
    return json.dumps(settings, default=str)
