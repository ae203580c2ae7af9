"""An audit as a picture."""

import importlib.util
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sellf.audit.result import Audit


def draw(audit: "Audit") -> Any:
    """Return a matplotlib figure: one line a group, its interval, the naive and imputed figures."""
    if importlib.util.find_spec("matplotlib") is None:
        raise ImportError("plot needs matplotlib: type `pip install 'sellf[report]'`.")
    from matplotlib.figure import Figure

    from sellf.audit.verdict import say

    groups = list(audit.by_group.values())
    places = range(len(groups))
    figure = Figure(figsize=(7, 1.4 + 0.45 * len(groups)), layout="constrained")
    axes = figure.subplots()
    axes.hlines(
        places, [g.low for g in groups], [g.high for g in groups], linewidth=6, alpha=0.4,
        label=f"{1 - audit.delta:.0%} interval",
    )  # fmt: skip
    axes.plot([g.value for g in groups], places, "o", label="ours")
    axes.plot([g.imputed for g in groups], places, "d", fillstyle="none", label="imputed")
    axes.plot([g.naive for g in groups], places, "x", label="accepted only")
    if audit.truth is not None:
        axes.plot([audit.truth[name] for name in audit.by_group], places, "k|", ms=16, label="true")
    axes.set_yticks(list(places), [say(name) for name in audit.by_group])
    axes.set_ylim(len(groups) - 0.5, -0.5)
    axes.set_xlim(-0.02, 1.02)
    axes.set_xlabel(audit.notion)
    axes.set_title(f"{audit.verdict} at tolerance {audit.omega:g}", loc="left")
    axes.legend(loc="upper left", bbox_to_anchor=(1, 1), frameon=False)
    return figure
