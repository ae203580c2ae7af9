"""The report of one run, or the comparison of several."""

import shlex
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from sellf.report import run_charts
from sellf.report.charts import shown
from sellf.report.configurations import (
    MOST_LINES,
    Configuration,
    configurations_of,
    listed,
    omega_of,
)
from sellf.report.page import (
    Block,
    Callout,
    Code,
    Facts,
    Grid,
    Heading,
    Page,
    Paragraph,
    Section,
    render,
)
from sellf.report.run_data import Run
from sellf.studies.statistics import DEVIATION, INTERVAL
from sellf.studies.summary import format_settings, format_value

MOST_COMMANDS = 30
"""The largest number of training commands that a report lists."""


def report(runs: Sequence[Run], command: str) -> str:
    """Return the report of runs as one HTML file; `command` is what was typed for it."""
    return render(page(runs, command))


def page(runs: Sequence[Run], command: str) -> Page:
    """Return the report of runs."""
    tasks = list(dict.fromkeys(run.task for run in runs))
    sections: list[Section] = []
    sentences = []
    tiles: list[tuple[str, str, str]] = []
    for task in tasks:
        here = [run for run in runs if run.task == task]
        configurations = configurations_of(here)
        title = "" if len(tasks) == 1 else f" ({task[0]}, {task[1]}{_changes(here[0])})"
        sentences.append(answer(configurations))
        tiles = _tiles(configurations) if len(tasks) == 1 else []
        sections += [
            Section(f"{section.title}{title}", section.blocks)
            for section in parts_of(configurations)
        ]
    sections += [_every_run(runs), _assumed(runs), _again(runs, command)]
    waiting = [shown(run.name) for run in runs if run.evaluation is None]
    callouts = []
    if waiting:
        callouts.append(
            Callout(
                "Not finished, so not deployed: only their training is shown",
                [f"{name}: type `sellf train --resume {name}`" for name in waiting[:10]],
            )
        )
    several = len(runs) > 1
    return Page(
        title="Comparison of runs" if several else "A run",
        kicker=_kicker(runs),
        answer=sentences[0][0] if len(tasks) == 1 else f"{len(tasks)} comparisons.",
        lead=[
            *(sentences[0][1:] if len(tasks) == 1 else [" ".join(some) for some in sentences]),
            _explain(runs),
        ],
        tiles=tiles,
        callouts=callouts,
        sections=sections,
    )


def parts_of(configurations: Sequence[Configuration]) -> list[Section]:
    """Return the charts and tables of configurations that may be compared."""
    done = [one for one in configurations if one.done]
    sections = []
    if done:
        few = run_charts.few_of(done)
        sections += [
            Section(
                "The picture", [*run_charts.over_deployment(few, done), *run_charts.views(few)]
            ),
            Section("The numbers", [summary(done)]),
            Section("Acceptance and qualification of each group", run_charts.groups(few)),
        ]
        policies = [one for one in few if all(run.policy for run in one.done)]
        if policies:
            sections.append(Section("Who is accepted", run_charts.policies(policies)))
    learned = run_charts.few_of([one for one in configurations if one.learned])
    if learned:
        sections.append(Section("Learning", run_charts.learning(learned)))
        bounded = [one for one in learned if run_charts.bounded(one)]
        if bounded:
            sections.append(
                Section("The terms of the theoretical bound", run_charts.bound(bounded))
            )
    return sections


def answer(configurations: Sequence[Configuration]) -> list[str]:
    """Return the result of runs in a sentence, and another one if rewards rank them differently."""
    done = [one for one in configurations if one.done]
    first = configurations[0].runs[0]
    if not done:
        return [f"{configurations[0].name} on {first.world} is not fully trained yet."]
    omega = omega_of(configurations)
    fairest = min(done, key=lambda one: one.mean("true"))
    richest = max(done, key=lambda one: one.mean("reward"))
    gap, what = fairest.mean("true"), f"disparity in {first.spec.notion}"
    within = "within" if gap <= omega else "above"
    if len(done) == 1:
        naive = f"Among the accepted alone the disparity is {fairest.mean('accepted'):.3f}"
        imputed = f"; with predictions filled in, {fairest.mean('imputed'):.3f}"
        return [
            f"{done[0].name} on {first.world} earns {fairest.mean('reward'):,.0f} with a "
            f"true {what} of {gap:.3f}, {within} the tolerance of {omega:g}.",
            f"{naive}{imputed if fairest.imputes else ''}.",
        ]
    if fairest is richest:
        return [
            f"On {first.world}, {fairest.name} has the smallest true {what}, {gap:.3f}, and "
            f"the largest reward, {fairest.mean('reward'):,.0f}, of {len(done)}."
        ]
    return [
        f"On {first.world}, {fairest.name} has the smallest true {what}: {gap:.3f}, "
        f"{within} the tolerance of {omega:g}.",
        f"{richest.name} earns the most, {richest.mean('reward'):,.0f} against "
        f"{fairest.mean('reward'):,.0f}, with a disparity of {richest.mean('true'):.3f}.",
    ]


def summary(configurations: Sequence[Configuration]) -> Grid:
    """Return a table by configuration: reward, disparity in every view, acceptance by group."""
    first = configurations[0].evaluations[0]
    several = any(len(one.done) > 1 for one in configurations)
    columns: dict[str, list[Any]] = {
        "": [one.name for one in configurations],
        "runs": [len(one.done) for one in configurations],
    }
    for what, name in (("reward", "reward"), ("true", "true disparity")):
        found = [one.estimate(what) for one in configurations]
        columns[name] = [figure.mean for figure in found]
        if several:
            columns[f"± {name}"] = [figure.half for figure in found]
        else:
            columns[f"std of {name}"] = [figure.std for figure in found]
    columns["exact"] = [one.mean("exact") for one in configurations]
    if any(one.imputes for one in configurations):
        columns["imputed"] = [
            one.mean("imputed") if one.imputes else None for one in configurations
        ]
    columns["accepted only"] = [one.mean("accepted") for one in configurations]
    for i, group in enumerate(first.groups):
        columns[f"accepted, {shown(group)}"] = [
            float(np.mean([found.acceptances[:, i].mean() for found in one.evaluations]))
            for one in configurations
        ]
    best = best_in(columns["reward"], "reward", max)
    best |= best_in(columns["true disparity"], "true disparity", min)
    how = f"±: half of the {INTERVAL}" if several else f"std: {DEVIATION}"
    return Grid(
        columns,
        f"Results of the deployments; {first.notion}",
        f"{how}. true: in the last decisions, with hidden outcomes; exact: of the whole "
        "population, without sampling noise; imputed: with predictions in place of hidden "
        "outcomes; accepted only: what most tools report.",
        best,
    )


def best_in(
    values: Sequence[float], name: str, choose: Callable[..., float]
) -> frozenset[tuple[int, str]]:
    """Return the best cells of a column, including ties."""
    known = [value for value in values if value == value]
    if len(known) < 2:
        return frozenset()
    best = choose(known)
    return frozenset((i, name) for i, value in enumerate(values) if value == best)


def _tiles(configurations: Sequence[Configuration]) -> list[tuple[str, str, str]]:
    done = [one for one in configurations if one.done]
    tiles = []
    for one in done[:3]:
        tiles.append(
            (
                one.name,
                f"{one.mean('true'):.3f}",
                f"true disparity; reward {one.mean('reward'):,.0f}; accepted only "
                f"{one.mean('accepted'):.3f}",
            )
        )
    if done:
        tiles.append(("Tolerated", f"{omega_of(configurations):g}", "omega"))
    return tiles


def _kicker(runs: Sequence[Run]) -> str:
    if len(runs) == 1:
        run = runs[0]
        spec = run.spec
        return f"A run: {spec.algorithm.name} on {run.world}, {spec.notion}, seed {spec.seed}"
    worlds = listed(list(dict.fromkeys(run.world for run in runs)))
    return f"Comparison of {len(runs)} runs on {worlds}"


def _explain(runs: Sequence[Run]) -> str:
    found = next((run.evaluation for run in runs if run.evaluation is not None), None)
    if found is None:
        return "No agent has been deployed yet."
    return (
        f"Each agent was deployed to {found.deployments} new populations. The decision maker never "
        "sees the outcome of a rejected person; the true disparity here takes it into account."
    )


def _every_run(runs: Sequence[Run]) -> Section:
    columns = {
        "run": [run.name for run in runs],
        "world": [run.world for run in runs],
        "notion": [run.spec.notion for run in runs],
        "algorithm": [run.spec.algorithm.name for run in runs],
        "seed": [None if run.elsewhere else run.spec.seed for run in runs],
        "steps": [None if run.elsewhere else run.spec.steps for run in runs],
        "reward": [run.figure("reward") for run in runs],
        "true disparity": [run.figure("true") for run in runs],
        "accepted only": [run.figure("accepted") for run in runs],
        "agent": [run.fingerprint[:12] for run in runs],
    }
    note = "agent: the first twelve digits of the SHA-256 of agent.safetensors."
    return Section("Every run", [Grid(columns, "Every run", note)])


def _assumed(runs: Sequence[Run]) -> Section:
    worlds = listed(list(dict.fromkeys(run.world for run in runs)))
    return Section(
        "What was assumed",
        [
            Paragraph(
                f"All results are from a simulated world ({worlds}), whose hidden outcomes are "
                "known to this report and not to the algorithms that may not see them. Results "
                "vary between seeds: a difference between algorithms that is not larger than the "
                "bands may be due to chance."
            )
        ],
    )


def _again(runs: Sequence[Run], command: str) -> Section:
    others = list(dict.fromkeys(run.name for run in runs if run.elsewhere))
    commands = [training_command(run) for run in runs if not run.elsewhere]
    if others:
        command = f"# in Python, with the policies {listed(others)}, trained elsewhere:\n{command}"
    left = len(commands) - MOST_COMMANDS
    more = [f"# and {left} more like these"] if left > 0 else []
    versions = list(dict.fromkeys(run.versions for run in runs if run.versions))
    agents = [run for run in runs if run.fingerprint][:4]
    facts = [("Versions", "; ".join(versions))] if versions else []
    facts += [("Fingerprint", f"SHA-256 of {d.name}: {d.fingerprint}") for d in agents]
    blocks: list[Block] = [Code("\n".join([*commands[:MOST_COMMANDS], *more, command]))]
    if facts:
        blocks.append(Facts(facts))
    return Section("How to reproduce this", [*blocks, Heading("Settings"), settings_of(runs)])


def settings_of(runs: Sequence[Run]) -> Grid:
    """Return a table of the settings of runs, with one column per configuration."""
    own = [run for run in runs if not run.elsewhere]
    found = {one.name: one.runs[0].spec.hyperparameters for one in configurations_of(own)}
    names = list(dict.fromkeys(name for own in found.values() for name in own))
    columns: dict[str, list[str | None]] = {"setting": list(names)}
    for title, own in list(found.items())[:MOST_LINES]:
        columns[title] = [format_value(own[name]) if name in own else None for name in names]
    return Grid(columns, "Settings of the algorithms")


def training_command(run: Run) -> str:
    """Return the command that trains a run again."""
    spec = run.spec
    arguments = ["sellf", "train", spec.world.name, spec.algorithm.name, "--notion", spec.notion]
    arguments += ["--steps", str(spec.steps), "--seed", str(spec.seed), "--out", run.name]
    changed = spec.changed | spec.world.settings
    if changed:
        arguments += ["--set", *(f"{name}={format_value(v)}" for name, v in changed.items())]
    return shlex.join(arguments)


def _changes(run: Run) -> str:
    settings = run.spec.world.settings
    return f", {format_settings(settings)}" if settings else ""
