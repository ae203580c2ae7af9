"""Print the figures behind each row of docs/claims.md, from the runs in a store.

SELLF_STORE=sellf-store python tools/claims.py

A claim whose study is not complete is said to be so; what there is of it is printed.
"""

from collections.abc import Callable

import numpy as np

from sellf.studies import spec
from sellf.studies.records import Cell, Record, Results
from sellf.studies.results import results
from sellf.studies.store import open_store
from sellf.studies.summary import estimate

LAST = 20
"""How many of the last iterations stand for the end of a training."""
EARLY = 60
"""How many of the first iterations stand for its beginning."""


def seeds(cell: Cell) -> str:
    """Return disparity and reward over a cell's seeds."""
    gap = estimate([r.evaluation.disparities["true"] for r in cell.final])
    reward = estimate([r.evaluation.rewards for r in cell.final])
    exact = estimate([r.evaluation.disparities["exact"] for r in cell.final])
    each = ", ".join(f"{r.evaluation.disparity:.3f}" for r in cell.final[:5])
    return (
        f"|Delta| {gap.mean:.3f} ± {gap.half or 0:.3f} (exact {exact.mean:.3f}; by seed {each}), "
        f"reward {reward.mean:,.0f} ± {reward.half or 0:.0f}, chosen {cell.chosen or '-'}"
    )


def mean(cell: Cell, value: Callable[[Record], float]) -> float:
    """Return the mean over seeds."""
    return float(np.mean([value(record) for record in cell.final]))


def gap(record: Record) -> np.ndarray:
    """Return |imputed - true| disparity during training."""
    return np.abs(record.metrics["disparity_imputed"] - record.metrics["disparity_true"])


def qualification(cell: Cell) -> str:
    """Return each group's qualification at first and at last, with the change."""
    at = np.mean([r.evaluation.by_time["qualification"].mean(0) for r in cell.final], axis=0)
    names = cell.final[0].evaluation.groups
    return "; ".join(
        f"{name} {at[0, i]:.3f} to {at[-1, i]:.3f} ({at[-1, i] - at[0, i]:+.3f})"
        for i, name in enumerate(names)
    )


def acceptance(cell: Cell) -> str:
    """Return each group's share of people accepted."""
    shares = np.mean([r.evaluation.acceptances.mean(0) for r in cell.final], axis=0)
    groups = cell.final[0].evaluation.groups
    return ", ".join(f"{n} {x:.2f}" for n, x in zip(groups, shares, strict=True))


def by_algorithm(found: Results, claims: str) -> None:
    """Print claims about algorithms, cell by cell."""
    for cell in found.cells:
        if cell.final:
            print(f"[{claims}] {cell.world}, {cell.notion}, {cell.algorithm}: {seeds(cell)}")
            print(f"      accepted: {acceptance(cell)}; qualified: {qualification(cell)}")


def renyi(found: Results) -> None:
    """Print claims 1 to 3."""
    for cell in found.cells:
        if not cell.final:
            continue
        early = mean(cell, lambda r: gap(r)[:EARLY].max())
        late = mean(cell, lambda r: gap(r)[-LAST:].mean())
        first = mean(cell, lambda r: float(r.metrics["renyi"][:LAST].mean()))
        last = mean(cell, lambda r: float(r.metrics["renyi"][-LAST:].mean()))
        print(
            f"[1-3] {cell.chosen}: gap's largest early {early:.4f}, at the end {late:.4f}; Renyi "
            f"term {first:.3f} to {last:.3f}; {seeds(cell)}; accepted {acceptance(cell)}"
        )


def beta(found: Results) -> None:
    """Print claims 13 and 14."""
    for cell in found.cells:
        if cell.final:
            imputed = mean(cell, lambda r: float(r.evaluation.disparities["imputed"].mean()))
            print(f"[13-14] {cell.chosen}: imputed {imputed:.3f}; {seeds(cell)}")


def by_group(found: Results, claims: str, metrics: dict[str, str]) -> None:
    """Print claims about what each group has during training."""
    for cell in found.cells:
        for name, how in metrics.items() if cell.final else ():
            runs = np.stack([r.metrics[name] for r in cell.final]).astype(float)
            runs = np.sqrt(runs) if how == "root" else runs
            middle, end = runs.mean(0), runs[:, -LAST:].mean((0, 1))
            extreme = middle.min(0) if how == "least" else middle.max(0)
            groups = cell.final[0].evaluation.groups
            said = ", ".join(
                f"{g}: {'least' if how == 'least' else 'most'} {e:.3f}, end {x:.3f}"
                for g, e, x in zip(groups, extreme, end, strict=True)
            )
            print(f"[{claims}] {cell.chosen} {name}: {said}")


def times(found: Results) -> None:
    """Print claim 12."""
    for cell in found.cells:
        if cell.final:
            seconds = mean(cell, lambda r: r.seconds * 500_000 / r.spec.steps)
            print(f"[12] {cell.world}, {cell.algorithm}: {seconds:.1f} s")


CLAIMS: dict[str, Callable[[Results], None]] = {
    "paper-main": lambda found: by_algorithm(found, "4-11"),
    "timing": times,
    "ablation-renyi": renyi,
    "ablation-disparity": beta,
    "bound-terms": lambda found: by_group(
        found, "15-16", {"error": "most", "divergence": "root", "published_divergence": "most"}
    ),
    "weights": lambda found: by_group(
        found,
        "18-19",
        {
            "largest_weight": "most",
            "published_largest_weight": "most",
            "smallest_acceptance": "least",
            "published_smallest_acceptance": "least",
        },
    ),
    "paper-relu": lambda found: by_algorithm(found, "17"),
    "paper-extra": lambda found: by_algorithm(found, "20-24"),
    "paper-continuous": lambda found: by_algorithm(found, "25"),
    "direct": lambda found: by_algorithm(found, "sellf-direct"),
}


def main() -> None:
    """Print everything."""
    for name, show in CLAIMS.items():
        study = spec.load(name)
        found = results(study, open_store(write=False, alone=study.alone))
        missing = [c for c in found.cells if len(c.final) < len(study.seeds)]
        print(f"\n{name}: " + (f"{len(missing)} rows are not complete" if missing else "complete"))
        show(found)


if __name__ == "__main__":
    main()
