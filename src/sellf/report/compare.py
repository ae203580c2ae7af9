"""The report of runs: one by itself, or many compared."""

import shlex
from collections.abc import Callable, Sequence

import numpy as np

from sellf.report import run_charts
from sellf.report.charts import shown
from sellf.report.configurations import MOST_LINES, Kind, kinds_of, listed, omega_of, short
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
from sellf.report.run_data import Deed

MOST_COMMANDS = 30
"""Commands that a report names to train its runs again."""


def report(deeds: Sequence[Deed], command: str) -> str:
    """Return the report of runs as one HTML file; `command` is what was typed for it."""
    return render(page(deeds, command))


def page(deeds: Sequence[Deed], command: str) -> Page:
    """Return the report of runs."""
    tasks = list(dict.fromkeys(deed.task for deed in deeds))
    sections: list[Section] = []
    sentences = []
    tiles: list[tuple[str, str, str]] = []
    for task in tasks:
        here = [deed for deed in deeds if deed.task == task]
        kinds = kinds_of(here)
        title = "" if len(tasks) == 1 else f" ({task[0]}, {task[1]}{_unusual(here[0])})"
        sentences.append(answer(kinds))
        tiles = _tiles(kinds) if len(tasks) == 1 else []
        sections += [
            Section(f"{section.title}{title}", section.blocks) for section in parts_of(kinds)
        ]
    sections += [_every_run(deeds), _assumed(deeds), _again(deeds, command)]
    waiting = [shown(deed.name) for deed in deeds if deed.evaluation is None]
    callouts = []
    if waiting:
        callouts.append(
            Callout(
                "Not finished, so not deployed: only their learning is shown",
                [f"{name}: type `sellf train --resume {name}`" for name in waiting[:10]],
            )
        )
    several = len(deeds) > 1
    return Page(
        title="Comparison of runs" if several else "A run",
        kicker=_kicker(deeds),
        answer=sentences[0][0] if len(tasks) == 1 else f"{len(tasks)} comparisons.",
        lead=[
            *(sentences[0][1:] if len(tasks) == 1 else [" ".join(some) for some in sentences]),
            _explain(deeds),
        ],
        tiles=tiles,
        callouts=callouts,
        sections=sections,
    )


def parts_of(kinds: Sequence[Kind]) -> list[Section]:
    """Return the pictures and numbers of what may be compared."""
    done = [kind for kind in kinds if kind.done]
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
        policies = [kind for kind in few if all(deed.policy for deed in kind.done)]
        if policies:
            sections.append(Section("Who is accepted", run_charts.policies(policies)))
    learned = run_charts.few_of([kind for kind in kinds if kind.learned])
    if learned:
        sections.append(Section("Learning", run_charts.learning(learned)))
        bounded = [kind for kind in learned if run_charts.bounded(kind)]
        if bounded:
            sections.append(
                Section("What the theory's bound is made of", run_charts.bound(bounded))
            )
    return sections


def answer(kinds: Sequence[Kind]) -> list[str]:
    """Return what runs came to: the answer, and a sentence more if rewards tell another story."""
    done = [kind for kind in kinds if kind.done]
    first = kinds[0].deeds[0]
    if not done:
        return [f"{kinds[0].name} on {shown(first.world)} is not trained to the end yet."]
    omega = omega_of(kinds)
    fairest = min(done, key=lambda kind: kind.mean("true"))
    richest = max(done, key=lambda kind: kind.mean("reward"))
    gap, what = fairest.mean("true"), f"disparity in {first.notion}"
    within = "within" if gap <= omega else "above"
    if len(done) == 1:
        naive = f"Among the accepted alone the disparity is {fairest.mean('accepted'):.3f}"
        imputed = f"; with predictions filled in, {fairest.mean('imputed'):.3f}"
        return [
            f"{done[0].name} on {shown(first.world)} earns {fairest.mean('reward'):,.0f} with a "
            f"true {what} of {gap:.3f}, {within} the tolerance of {omega:g}.",
            f"{naive}{imputed if fairest.imputes else ''}.",
        ]
    if fairest is richest:
        return [
            f"On {shown(first.world)}, {fairest.name} has the smallest true {what}, {gap:.3f}, and "
            f"the largest reward, {fairest.mean('reward'):,.0f}, of {len(done)}."
        ]
    return [
        f"On {shown(first.world)}, {fairest.name} has the smallest true {what}: {gap:.3f}, "
        f"{within} the tolerance of {omega:g}.",
        f"{richest.name} earns the most, {richest.mean('reward'):,.0f} against "
        f"{fairest.mean('reward'):,.0f}, with a disparity of {richest.mean('true'):.3f}.",
    ]


def summary(kinds: Sequence[Kind]) -> Grid:
    """Return a line a kind: reward, disparity in every view, acceptance by group."""
    first = kinds[0].done[0].evaluation
    assert first is not None
    columns = {
        "": [kind.name for kind in kinds],
        "runs": [len(kind.done) for kind in kinds],
        "reward": [kind.mean("reward") for kind in kinds],
        "± reward": [kind.spread("reward") for kind in kinds],
        "true disparity": [kind.mean("true") for kind in kinds],
        "± disparity": [kind.spread("true") for kind in kinds],
        "exact": [kind.mean("exact") for kind in kinds],
        "imputed": [kind.mean("imputed") if kind.imputes else None for kind in kinds],
        "accepted only": [kind.mean("accepted") for kind in kinds],
    }
    for i, group in enumerate(first.groups):
        columns[f"accepted, {shown(group)}"] = [
            float(np.mean([d.evaluation.acceptances[:, i].mean() for d in k.done if d.evaluation]))
            for k in kinds
        ]
    best = best_in(columns["reward"], "reward", max)
    best |= best_in(columns["true disparity"], "true disparity", min)
    single = all(len(kind.done) == 1 for kind in kinds)
    over = "deployments" if single else "runs, or over deployments where there is one run"
    return Grid(
        columns,
        f"What deployments came to; {first.notion}",
        f"±: standard deviation over {over}. true: in the last decisions, with hidden outcomes; "
        "exact: of the whole population, free of chance; imputed: with predictions in place of "
        "hidden outcomes; accepted only: what most tools report.",
        best,
    )


def best_in(
    values: Sequence[float], name: str, choose: Callable[..., float]
) -> frozenset[tuple[int, str]]:
    """Return the best cells of a column, all of them if several are as good."""
    known = [value for value in values if value == value]
    if len(known) < 2:
        return frozenset()
    best = choose(known)
    return frozenset((i, name) for i, value in enumerate(values) if value == best)


def _tiles(kinds: Sequence[Kind]) -> list[tuple[str, str, str]]:
    done = [kind for kind in kinds if kind.done]
    tiles = []
    for kind in done[:3]:
        tiles.append(
            (
                kind.name,
                f"{kind.mean('true'):.3f}",
                f"true disparity; reward {kind.mean('reward'):,.0f}; accepted only "
                f"{kind.mean('accepted'):.3f}",
            )
        )
    if done:
        tiles.append(("Tolerated", f"{omega_of(kinds):g}", "omega"))
    return tiles


def _kicker(deeds: Sequence[Deed]) -> str:
    if len(deeds) == 1:
        deed = deeds[0]
        return f"A run: {deed.algorithm} on {shown(deed.world)}, {deed.notion}, seed {deed.seed}"
    worlds = listed(list(dict.fromkeys(shown(deed.world) for deed in deeds)))
    return f"Comparison of {len(deeds)} runs on {worlds}"


def _explain(deeds: Sequence[Deed]) -> str:
    found = next((deed.evaluation for deed in deeds if deed.evaluation is not None), None)
    if found is None:
        return "Nothing was deployed yet."
    return (
        f"Each agent was deployed to {found.deployments} new populations. The decision maker never "
        "sees the outcome of a rejected person; the true disparity here does."
    )


def _every_run(deeds: Sequence[Deed]) -> Section:
    def figure(deed: Deed, what: str) -> float | None:
        found = deed.evaluation
        if found is None:
            return None
        return found.reward if what == "reward" else float(found.disparities[what].mean())

    columns = {
        "run": [deed.name for deed in deeds],
        "world": [deed.world for deed in deeds],
        "notion": [deed.notion for deed in deeds],
        "algorithm": [deed.algorithm for deed in deeds],
        "seed": [deed.seed for deed in deeds],
        "steps": [deed.steps for deed in deeds],
        "reward": [figure(deed, "reward") for deed in deeds],
        "true disparity": [figure(deed, "true") for deed in deeds],
        "accepted only": [figure(deed, "accepted") for deed in deeds],
        "agent": [deed.fingerprint[:12] for deed in deeds],
    }
    note = "agent: the first twelve digits of the SHA-256 of agent.safetensors."
    return Section("Every run", [Grid(columns, "Every run", note)])


def _assumed(deeds: Sequence[Deed]) -> Section:
    worlds = listed(list(dict.fromkeys(shown(deed.world) for deed in deeds)))
    return Section(
        "What was assumed",
        [
            Paragraph(
                f"All of this happens in a simulated world ({worlds}), whose hidden outcomes are "
                "known to this report and not to the algorithms that may not see them. Seeds "
                "differ: a difference between algorithms that is not larger than the bands may be "
                "chance."
            )
        ],
    )


def _again(deeds: Sequence[Deed], command: str) -> Section:
    commands = [_training(deed) for deed in deeds]
    left = len(commands) - MOST_COMMANDS
    more = [f"# and {left} more like these"] if left > 0 else []
    versions = list(dict.fromkeys(deed.versions for deed in deeds if deed.versions))
    agents = [deed for deed in deeds if deed.fingerprint][:4]
    facts = [("Versions", "; ".join(versions))] if versions else []
    facts += [("Fingerprint", f"SHA-256 of {d.name}: {d.fingerprint}") for d in agents]
    blocks: list[Block] = [Code("\n".join([*commands[:MOST_COMMANDS], *more, command]))]
    if facts:
        blocks.append(Facts(facts))
    return Section("How to get this again", [*blocks, Heading("Settings"), settings_of(deeds)])


def settings_of(deeds: Sequence[Deed]) -> Grid:
    """Return the settings of runs, a column for each kind."""
    kinds = kinds_of(deeds)
    names = list(dict.fromkeys(name for kind in kinds for name in kind.deeds[0].settings))
    columns: dict[str, list[str | None]] = {"setting": list(names)}
    for kind in kinds[:MOST_LINES]:
        own = kind.deeds[0].settings
        columns[kind.name] = [short(own[name]) if name in own else None for name in names]
    return Grid(columns, "Settings of the algorithms")


def _training(deed: Deed) -> str:
    """Return what to type to train a run again."""
    from sellf.algorithms import catalogue
    from sellf.algorithms.config import as_dict

    usual = as_dict(catalogue.find(deed.algorithm).config())
    changed = {k: v for k, v in deed.settings.items() if usual.get(k) != v} | deed.world_settings
    arguments = ["sellf", "train", deed.world, deed.algorithm, "--notion", deed.notion]
    arguments += ["--steps", str(deed.steps), "--seed", str(deed.seed), "--out", deed.name]
    if changed:
        arguments += ["--set", *(f"{name}={short(value)}" for name, value in changed.items())]
    return shlex.join(arguments)


def _unusual(deed: Deed) -> str:
    return "".join(f", {name} {short(value)}" for name, value in deed.world_settings.items())
