"""Figure of the initial population of a world and its outcomes."""

from typing import TYPE_CHECKING, Any

import numpy as np

from sellf.envs.space import observe
from sellf.envs.table import tabulated
from sellf.envs.worlds import make_world
from sellf.studies.plots import style
from sellf.studies.records import Results

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FEATURES = {
    "lending": {"score": "score "},
    "recidivism": {"age": "age = ", "priors": "priors "},
    "school": {"age class": ("younger", "older")},
    "school-continuous": {"age class": ("younger", "older")},
}
"""The inputs to draw for each world, by their prefix or by their names."""
GROUPS = ("#333333", "#D9A441", "#6FA8DC", "#B5D99C")
HATCHES = ("", "///", "...", "xxx")


def distributions(results: Results, name: str, settings: dict[str, Any]) -> "Figure":
    """Draw the features of a new population and the probability of a good label, by group."""
    world = tabulated(make_world(name, **settings), "this picture")
    share = np.diff(np.asarray(world.arrivals.cumulative, np.float64), prepend=0.0)
    there = share > 0
    share, profile = share[there], np.asarray(world.arrivals.profile)[there]
    rows = np.asarray(observe(world.space, world.arrivals.profile[there]))
    group, alpha = np.asarray(world.group)[profile], np.asarray(world.alpha)[profile]
    features = FEATURES.get(name, {})
    figure = style.new(3.9 * (len(features) + 1), 6.2)
    panels = figure.subplots(2, len(features) + 1, squeeze=False)
    for column, (title, names) in enumerate(features.items()):
        chosen = [i for i, text in enumerate(world.columns) if text.startswith(names)]
        labels = [world.columns[i].removeprefix(names if isinstance(names, str) else "")
                  for i in chosen]  # fmt: skip
        top, bottom = panels[:, column]
        for g, member in enumerate(world.groups):
            mine = share * (group == g)
            people = mine @ rows[:, chosen]
            good = (mine * alpha) @ rows[:, chosen]
            _bars(top, people / mine.sum(), g, len(world.groups), member)
            with np.errstate(invalid="ignore"):
                rate = np.where(people > 0, good / people, np.nan)
            bottom.plot(rate, color=GROUPS[g % 4], linestyle=style.DASHES[g % 4],
                        marker=style.MARKERS[g], label=member)  # fmt: skip
        top.set(title=f"share by {title}")
        bottom.set(title=f"P(Y = 1) by {title}", ylim=(0, 1.02))
        for axes in (top, bottom):
            turn = 45 if len(labels) > 5 else 0
            axes.set_xticks(range(len(labels)), labels, rotation=turn, fontsize=8)
            axes.set_xlim(-0.6, len(labels) - 0.4)
    top, bottom = panels[:, -1]
    edges = np.linspace(0, 1, 21)
    for g, member in enumerate(world.groups):
        mine = share * (group == g)
        heights = np.histogram(alpha, edges, weights=mine / mine.sum())[0]
        top.stairs(heights, edges, color=GROUPS[g % 4], linestyle=style.DASHES[g % 4], lw=1.8,
                   label=member)  # fmt: skip
        _bars(bottom, np.array([mine.sum(), mine @ alpha / mine.sum()]), g, len(world.groups),
              member)  # fmt: skip
    top.set(title="share by chance of a good label", xlabel="P(Y = 1 | x, z)")
    bottom.set_xticks([0, 1], ["share of people", "mean P(Y = 1)"])
    bottom.set(title="groups as a whole", ylim=(0, 1.02))
    style.legend(figure, bottom)
    note = f"{name} at the start of an episode; exact figures of the world, no run behind them"
    return style.finish(figure, results, [], note)


def _bars(axes: Any, heights: np.ndarray, index: int, groups: int, name: str) -> None:
    width = 0.8 / groups
    x = np.arange(len(heights)) - 0.4 + width * (index + 0.5)
    axes.bar(x, heights, width, color=GROUPS[index % 4], hatch=HATCHES[index % 4],
             edgecolor="white", linewidth=0.5, label=name)  # fmt: skip
