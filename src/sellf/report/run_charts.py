"""Charts of runs: over deployment, by group, of the policy, and of the training."""

from collections.abc import Sequence

import numpy as np

from sellf import palette
from sellf.palette import Marker
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
    zoomed,
)
from sellf.report.configurations import MOST_LINES, Configuration, listed, looks_of, omega_of
from sellf.report.page import Block, Pair, Paragraph
from sellf.studies.statistics import INTERVAL, half_widths, mean_over, spread_name, thinned

VIEWS = {
    "true": "true",
    "exact": "true, exact",
    "imputed": "imputed",
    "accepted": "accepted only",
}
MARKS: tuple[tuple[str, str, int, Marker], ...] = (
    ("true", "true", palette.VIEWS["true"], "circle"),
    ("accepted only", "accepted", palette.VIEWS["accepted"], "cross"),
    ("imputed", "imputed", palette.VIEWS["imputed"], "diamond"),
)
"""The marks of a disparity's views: name, view, colour and shape."""


def _over_seeds(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the mean over runs (the first axis), and half the width of the interval."""
    return mean_over(values), half_widths(values)


def few_of(configurations: Sequence[Configuration]) -> list[Configuration]:
    """Return the configurations to draw: all, or the fairest if there are many."""
    if len(configurations) <= MOST_LINES:
        return list(configurations)
    fairest = sorted(configurations, key=lambda one: one.mean("true") if one.done else np.inf)
    kept = {id(one) for one in fairest[:MOST_LINES]}
    return [one for one in configurations if id(one) in kept]


def over_deployment(few: Sequence[Configuration], done: Sequence[Configuration]) -> list[Block]:
    """Return charts of reward and true disparity over deployment, for `few` out of all `done`."""
    first = few[0].done[0]
    omega = omega_of(done)
    means = listed([f"{one.name}: {one.mean('reward'):,.0f}" for one in few])
    gaps = listed([f"{one.name}: {one.mean('true'):.3f}" for one in few])
    some = "" if len(few) == len(done) else f" The {len(few)} fairest of {len(done)}."
    reward = _lines(few, "reward", "Reward", "resource", f"At the end, {means}.{some}")
    gap = _lines(
        few,
        "disparity",
        f"True disparity in {first.spec.notion}",
        "disparity",
        f"On average over time, {gaps}; {omega:g} is tolerated.{some}",
        references=[Reference(omega, f"tolerated: {omega:g}")],
        zero=True,
    )
    return [Pair([reward, gap])]


def _lines(
    configurations: Sequence[Configuration],
    what: str,
    title: str,
    label: str,
    text: str,
    references: Sequence[Reference] = (),
    zero: bool = False,
) -> Plot:
    series = []
    for look, one in zip(looks_of(configurations), configurations, strict=True):
        time = one.evaluations[0].by_time["time"]
        series.append(band(one.name, time, *one.over_time(what), look))
    return Plot(
        title=f"{title} over deployment",
        text=text,
        x_label="decisions",
        y_label=label,
        series=series,
        references=list(references),
        x_range=(0.0, None),
        y_range=(0.0, None) if zero else (None, None),
        spread=_spread(configurations),
    )


def _spread(configurations: Sequence[Configuration]) -> str:
    return spread_name(len(one.done) for one in configurations)


def views(configurations: Sequence[Configuration]) -> list[Block]:
    """Return the chart of the true disparity, the imputed one, and the one most tools report."""
    first = configurations[0].done[0]
    omega = omega_of(configurations)
    text = (
        "The true disparity, the disparity with predictions in place of hidden outcomes, and the "
        "disparity among the accepted alone."
    )
    if len(configurations) == 1:
        one = configurations[0]
        time = one.evaluations[0].by_time["time"]
        names = {"true": "disparity", "exact": "disparity_exact"}
        if one.imputes:
            names["imputed"] = "disparity_imputed"
        names["accepted"] = "disparity_accepted"
        series = [
            band(VIEWS[view], time, *one.over_time(key), palette.VIEWS[view])
            for view, key in names.items()
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
                spread=_spread(configurations),
            )
        ]
    true = [one.estimate("true") for one in configurations]
    return [
        Rows(
            title="True, imputed and naive disparity",
            text=text,
            x_label=f"disparity in {first.spec.notion}",
            names=[one.name for one in configurations],
            marks=[
                Marks(name, numbers(one.mean(view) for one in configurations), colour, marker)
                for name, view, colour, marker in MARKS
                if view != "imputed" or any(one.imputes for one in configurations)
            ],
            low=numbers(one.mean - one.spread for one in true),
            high=numbers(one.mean + one.spread for one in true),
            interval=_spread(configurations),
            reference=Reference(omega, f"tolerated: {omega:g}", "x"),
            x_range=(0.0, None),
        )
    ]


def groups(configurations: Sequence[Configuration]) -> list[Block]:
    """Return a pair of charts per configuration: acceptance and qualification of each group."""
    blocks: list[Block] = [
        Paragraph(
            "Acceptance is the probability that a member of the current population is accepted; "
            "qualification is the share of the group with a good outcome, which decisions change. "
            "If there are many groups, those accepted least and most are drawn."
        )
    ]
    drawn = drawn_groups(configurations)
    # One scale for all configurations, so that they can be compared.
    axes = {
        what: zoomed(edge for one in configurations for edge in _edges(one, what, drawn))
        for what in ("acceptance", "qualification")
    }
    for one in configurations:
        found = one.evaluations[0]
        time, groups = found.by_time["time"], [shown(found.groups[i]) for i in drawn]
        charts: list[Chart] = []
        for what, ends_of_axis in axes.items():
            mean, spread = (part[:, drawn] for part in one.over_time(what))
            ends = listed([f"{g} {mean[-1, i]:.2f}" for i, g in enumerate(groups[:MOST_LINES])])
            charts.append(
                Plot(
                    title=f"{what.capitalize()} under {one.name}",
                    text=f"At the end: {ends}.",
                    x_label="decisions",
                    y_label=what,
                    series=[
                        band(group, time, mean[:, i], spread[:, i], i)
                        for i, group in enumerate(groups)
                    ],
                    x_range=(0.0, None),
                    y_range=ends_of_axis,
                    spread=_spread([one]),
                )
            )
        blocks.append(Pair(charts))
    return blocks


def _edges(one: Configuration, what: str, drawn: list[int]) -> np.ndarray:
    """Return the edges of the bands of some groups over deployment."""
    mean, spread = one.over_time(what)
    half = np.nan_to_num(spread)
    return np.stack([mean - half, mean + half])[..., drawn].ravel()


def drawn_groups(configurations: Sequence[Configuration]) -> list[int]:
    """Return the indices of the groups to draw: all, or those accepted least and most."""
    found = configurations[0].evaluations[0]
    if len(found.groups) <= MOST_LINES:
        return list(range(len(found.groups)))
    order = np.argsort(found.acceptances.mean(axis=0))
    half = MOST_LINES // 2
    return [int(i) for i in (*order[:half], *order[-half:])]


def policies(configurations: Sequence[Configuration]) -> list[Block]:
    """Return charts of the policies: the probability of acceptance by group and class."""
    charts: list[Chart] = []
    drawn = drawn_groups(configurations)
    for one in configurations:
        first, found = one.done[0].policy, one.evaluations[0]
        assert first is not None
        tables = np.stack([run.policy.chance for run in one.done if run.policy is not None])
        positions = np.arange(len(first.classes))
        mean, spread = _over_seeds(tables)
        charts.append(
            Plot(
                title=f"Whom {one.name} accepts",
                text=f"The policy: the probability that a newcomer is accepted, by {first.axis} "
                "and group.",
                x_label=first.axis,
                y_label="chance of acceptance",
                x_names=first.classes,
                series=[
                    band(shown(found.groups[i]), positions, mean[i], spread[i], k)
                    for k, i in enumerate(drawn)
                ],
                y_range=(0.0, 1.0),
                spread=INTERVAL if len(tables) > 1 else "",
            )
        )
    return [Pair(charts)]


def learning(configurations: Sequence[Configuration]) -> list[Block]:
    """Return charts of reward and disparity during training, and of the views of the latter."""
    titles = {"reward": "Reward of each rollout", "disparity_true": "True disparity"}
    charts: list[Chart] = []
    for what, title in titles.items():
        series = []
        for look, one in zip(looks_of(configurations), configurations, strict=True):
            series.append(_learned(one, what, one.name, look))
        charts.append(_learning_plot(f"{title} during training", what, series, configurations))
    blocks: list[Block] = [Pair(charts)]
    for one in configurations:
        if one.imputes and all("disparity_imputed" in d.metrics for d in one.learned):
            lines = [
                _learned(one, f"disparity_{view}", VIEWS[view], palette.VIEWS[view])
                for view in ("true", "imputed", "accepted")
            ]
            title = f"The disparity as {one.name} saw it during training"
            blocks.append(_learning_plot(title, "disparity", lines, [one]))
    return blocks


def _learned(
    one: Configuration, what: str, name: str, colour: int, group: int | None = None
) -> Series:
    first = one.learned[0]
    runs = [run.metrics[what] for run in one.learned if what in run.metrics]
    values = np.stack([run if group is None else run[:, group] for run in runs])
    x = (np.arange(values.shape[1]) + 1) * first.spec.config.rollout
    x, values = thinned(x, values)
    return band(name, x, *_over_seeds(values), colour)


def _learning_plot(
    title: str,
    label: str,
    series: list[Series],
    configurations: Sequence[Configuration],
    text: str = "",
) -> Plot:
    several = any(len(one.learned) > 1 for one in configurations)
    last = listed([f"{s.name} {s.y[-1]:,.3g}" for s in series if s.y and s.y[-1] is not None])
    return Plot(
        title=title,
        text=text or f"By number of decisions learned from; at the end: {last}.",
        x_label="decisions learned from",
        y_label=label.split("_")[0],
        series=series,
        x_range=(0.0, None),
        y_range=(None, None) if label == "reward" else (0.0, None),
        spread=INTERVAL if several else "",
    )


def bounded(one: Configuration) -> bool:
    """Return whether the terms of the theory's bound were measured."""
    return all(
        np.ndim(run.metrics.get(name, 0)) == 2
        for run in one.learned
        for name in ("error", "divergence")
    )


def bound(configurations: Sequence[Configuration]) -> list[Block]:
    """Return charts of the two terms that bound the predictor's error on the rejected, by group."""
    blocks: list[Block] = [
        Paragraph(
            "The predictor's error on the rejected is at most the sum of two terms: its weighted "
            "error on the accepted, and a term that grows with the root of the Renyi divergence of "
            "the rejected from those accepted before."
        )
    ]
    for one in configurations:
        groups = _group_names(one)
        charts: list[Chart] = []
        for what, title, text in (
            ("error", "Weighted error on the accepted", "The size of the estimated first term."),
            ("divergence", "Root of the Renyi divergence", "The second term grows with it."),
        ):
            series = []
            size = abs if what == "error" else _root
            for i, group in enumerate(groups[:MOST_LINES]):
                plain = _learned(one, what, group, i, i)
                y = [None if v is None else size(v) for v in plain.y]
                series.append(Series(group, plain.x, y, colour=i, style=i))
            title = f"{title}, {one.name}"
            charts.append(_learning_plot(title, what, series, [one], text))
        blocks.append(Pair(charts))
    return blocks


def _root(value: float) -> float:
    return max(value, 0.0) ** 0.5


def _group_names(one: Configuration) -> list[str]:
    width = one.learned[0].metrics["error"].shape[1]
    found = one.evaluations[:1]
    return (
        [shown(g) for g in found[0].groups] if found else [f"group {i + 1}" for i in range(width)]
    )
