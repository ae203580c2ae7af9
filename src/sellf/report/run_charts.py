"""Pictures of runs: over deployment, by group, the policy itself, and how it was learned."""

from collections.abc import Sequence

import numpy as np

from sellf.report.charts import (
    Chart,
    Marks,
    Plot,
    Reference,
    Rows,
    Series,
    band,
    numbers,
    shown,
    thinned,
)
from sellf.report.configurations import MOST_LINES, Kind, listed, mean_over, omega_of
from sellf.report.page import Block, Pair, Paragraph

VIEWS = {"true": "true", "imputed": "imputed", "accepted": "accepted only"}


def few_of(kinds: Sequence[Kind]) -> list[Kind]:
    """Return those that are drawn: of many, the fairest."""
    if len(kinds) <= MOST_LINES:
        return list(kinds)
    fairest = sorted(kinds, key=lambda kind: kind.mean("true") if kind.done else np.inf)
    kept = {id(kind) for kind in fairest[:MOST_LINES]}
    return [kind for kind in kinds if id(kind) in kept]


def over_deployment(few: Sequence[Kind], done: Sequence[Kind]) -> list[Block]:
    """Return reward and true disparity over deployment, of `few` among all that are `done`."""
    first = few[0].done[0]
    omega = omega_of(done)
    means = listed([f"{kind.name}: {kind.mean('reward'):,.0f}" for kind in few])
    gaps = listed([f"{kind.name}: {kind.mean('true'):.3f}" for kind in few])
    some = "" if len(few) == len(done) else f" The {len(few)} fairest of {len(done)}."
    reward = _lines(few, "reward", "Reward", "resource", f"At the end, {means}.{some}")
    gap = _lines(
        few,
        "disparity",
        f"True disparity in {first.notion}",
        "disparity",
        f"On average over time, {gaps}; {omega:g} is tolerated.{some}",
        references=[Reference(omega, f"tolerated: {omega:g}")],
        zero=True,
    )
    return [Pair([reward, gap])]


def _lines(
    kinds: Sequence[Kind],
    what: str,
    title: str,
    label: str,
    text: str,
    references: Sequence[Reference] = (),
    zero: bool = False,
) -> Plot:
    series = []
    for i, kind in enumerate(kinds):
        found = kind.done[0].evaluation
        assert found is not None
        series.append(band(kind.name, found.by_time["time"], kind.over_time(what), i, i))
    return Plot(
        title=f"{title} over deployment",
        text=text,
        x_label="decisions",
        y_label=label,
        series=series,
        references=list(references),
        x_range=(0.0, None),
        y_range=(0.0, None) if zero else (None, None),
        spread=_spread(kinds),
    )


def _spread(kinds: Sequence[Kind]) -> str:
    several = [len(kind.done) > 1 for kind in kinds]
    if all(several):
        return "± standard deviation over runs"
    return "± standard deviation over " + ("runs or " if any(several) else "") + "deployments"


def views(kinds: Sequence[Kind]) -> list[Block]:
    """Return the disparity as it is, as it is imputed, and as most tools report it."""
    first = kinds[0].done[0]
    omega = omega_of(kinds)
    text = (
        "The disparity as it is, as predictions make it look, and as it looks among the accepted "
        "alone."
    )
    if len(kinds) == 1:
        kind = kinds[0]
        found = first.evaluation
        assert found is not None
        names = {"disparity": "true", "disparity_exact": "true, exact"}
        if kind.imputes:
            names["disparity_imputed"] = "imputed"
        names["disparity_accepted"] = "accepted only"
        series = [
            band(name, found.by_time["time"], kind.over_time(key), colour, colour)
            for colour, (key, name) in enumerate(names.items())
        ]
        return [
            Plot(
                title="True, imputed and naive disparity",
                text=text,
                x_label="decisions",
                y_label="disparity",
                series=series,
                references=[Reference(omega, f"tolerated: {omega:g}")],
                x_range=(0.0, None),
                y_range=(0.0, None),
                spread=_spread(kinds),
            )
        ]
    imputed = [kind.mean("imputed") if kind.imputes else float("nan") for kind in kinds]
    return [
        Rows(
            title="True, imputed and naive disparity",
            text=text,
            x_label=f"disparity in {first.notion}",
            names=[kind.name for kind in kinds],
            marks=[
                Marks("true", numbers(kind.mean("true") for kind in kinds), 0, "circle"),
                Marks("accepted only", numbers(k.mean("accepted") for k in kinds), 1, "cross"),
                Marks("imputed", numbers(imputed), 2, "diamond"),
            ],
            low=numbers(kind.mean("true") - kind.spread("true") for kind in kinds),
            high=numbers(kind.mean("true") + kind.spread("true") for kind in kinds),
            interval=_spread(kinds),
            reference=Reference(omega, f"tolerated: {omega:g}", "x"),
            x_range=(0.0, None),
        )
    ]


def groups(kinds: Sequence[Kind]) -> list[Block]:
    """Return acceptance and qualification of each group over deployment, a pair for each kind."""
    blocks: list[Block] = [
        Paragraph(
            "Acceptance is the chance of a member of the population as it is then; qualification "
            "is the share of the group with a good outcome, which decisions change. Of many "
            "groups, those accepted least and most are drawn."
        )
    ]
    drawn = drawn_groups(kinds)
    for kind in kinds:
        found = kind.done[0].evaluation
        assert found is not None
        time, groups = found.by_time["time"], [shown(found.groups[i]) for i in drawn]
        charts: list[Chart] = []
        for what in ("acceptance", "qualification"):
            values = kind.over_time(what)[:, :, drawn]
            ends = listed(
                [f"{g} {mean_over(values)[-1, i]:.2f}" for i, g in enumerate(groups[:MOST_LINES])]
            )
            charts.append(
                Plot(
                    title=f"{what.capitalize()} under {kind.name}",
                    text=f"At the end: {ends}.",
                    x_label="decisions",
                    y_label=what,
                    series=[
                        band(group, time, values[:, :, i], i, i) for i, group in enumerate(groups)
                    ],
                    x_range=(0.0, None),
                    y_range=(0.0, 1.0),
                    spread=_spread([kind]),
                )
            )
        blocks.append(Pair(charts))
    return blocks


def drawn_groups(kinds: Sequence[Kind]) -> list[int]:
    """Return which groups are drawn: of many, those accepted least and most."""
    found = kinds[0].done[0].evaluation
    assert found is not None
    if len(found.groups) <= MOST_LINES:
        return list(range(len(found.groups)))
    order = np.argsort(found.acceptances.mean(axis=0))
    half = MOST_LINES // 2
    return [int(i) for i in (*order[:half], *order[-half:])]


def policies(kinds: Sequence[Kind]) -> list[Block]:
    """Return whom each kind accepts."""
    charts: list[Chart] = []
    drawn = drawn_groups(kinds)
    for kind in kinds:
        first, found = kind.done[0].policy, kind.done[0].evaluation
        assert first is not None
        assert found is not None
        tables = np.stack([deed.policy.chance for deed in kind.done if deed.policy is not None])
        positions = np.arange(len(first.classes))
        charts.append(
            Plot(
                title=f"Whom {kind.name} accepts",
                text=f"The policy itself: the chance of acceptance of a newcomer, by {first.axis} "
                "and group.",
                x_label=first.axis,
                y_label="chance of acceptance",
                x_names=first.classes,
                series=[
                    band(shown(found.groups[i]), positions, tables[:, i], k, k)
                    for k, i in enumerate(drawn)
                ],
                y_range=(0.0, 1.0),
                spread="± standard deviation over runs" if len(tables) > 1 else "",
            )
        )
    return [Pair(charts)]


def learning(kinds: Sequence[Kind]) -> list[Block]:
    """Return how reward and disparity went while learning, and what was seen of the latter."""
    titles = {"reward": "Reward of each rollout", "disparity_true": "True disparity"}
    charts: list[Chart] = []
    for what, title in titles.items():
        series = []
        for i, kind in enumerate(kinds):
            series.append(_learned(kind, what, kind.name, i))
        charts.append(_learning_plot(f"{title} while learning", what, series, kinds))
    blocks: list[Block] = [Pair(charts)]
    for kind in kinds:
        if kind.imputes and all("disparity_imputed" in d.history for d in kind.learned):
            lines = [
                _learned(kind, f"disparity_{view}", name, i)
                for i, (view, name) in enumerate(VIEWS.items())
            ]
            title = f"What {kind.name} saw of the disparity while learning"
            blocks.append(_learning_plot(title, "disparity", lines, [kind]))
    return blocks


def _learned(kind: Kind, what: str, name: str, colour: int, group: int | None = None) -> Series:
    first = kind.learned[0]
    runs = [deed.history[what] for deed in kind.learned if what in deed.history]
    values = np.stack([run if group is None else run[:, group] for run in runs])
    x = (np.arange(values.shape[1]) + 1) * float(first.settings.get("rollout", 1))
    return band(name, *thinned(x, values), colour, colour)


def _learning_plot(
    title: str, label: str, series: list[Series], kinds: Sequence[Kind], text: str = ""
) -> Plot:
    several = any(len(kind.learned) > 1 for kind in kinds)
    last = listed([f"{s.name} {s.y[-1]:,.3g}" for s in series if s.y and s.y[-1] is not None])
    return Plot(
        title=title,
        text=text or f"By decision learned from; at the end: {last}.",
        x_label="decisions learned from",
        y_label=label.split("_")[0],
        series=series,
        x_range=(0.0, None),
        y_range=(None, None) if label == "reward" else (0.0, None),
        spread="± standard deviation over runs" if several else "",
    )


def bounded(kind: Kind) -> bool:
    """Return whether the terms of the theory's bound were measured."""
    return all(
        np.ndim(deed.history.get(name, 0)) == 2
        for deed in kind.learned
        for name in ("error", "divergence")
    )


def bound(kinds: Sequence[Kind]) -> list[Block]:
    """Return the two terms that bound the predictor's error on the rejected, per group."""
    blocks: list[Block] = [
        Paragraph(
            "The predictor's error on the rejected is at most the sum of two terms: its weighted "
            "error on the accepted, and a term that grows with the root of the Renyi divergence of "
            "the rejected from those accepted before."
        )
    ]
    for kind in kinds:
        groups = _group_names(kind)
        charts: list[Chart] = []
        for what, title, text in (
            ("error", "Weighted error on the accepted", "The size of the first term's estimate."),
            ("divergence", "Root of the Renyi divergence", "What the second term grows with."),
        ):
            series = []
            size = abs if what == "error" else _root
            for i, group in enumerate(groups[:MOST_LINES]):
                plain = _learned(kind, what, group, i, i)
                y = [None if v is None else size(v) for v in plain.y]
                series.append(Series(group, plain.x, y, colour=i, style=i))
            title = f"{title}, {kind.name}"
            charts.append(_learning_plot(title, what, series, [kind], text))
        blocks.append(Pair(charts))
    return blocks


def _root(value: float) -> float:
    return max(value, 0.0) ** 0.5


def _group_names(kind: Kind) -> list[str]:
    width = kind.learned[0].history["error"].shape[1]
    found = kind.done[0].evaluation if kind.done else None
    return [shown(g) for g in found.groups] if found else [f"group {i + 1}" for i in range(width)]
