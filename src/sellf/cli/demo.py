"""`sellf demo`: what a simulated lending log hides, and the paper's lending experiment."""

import time
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from sellf.cli.lending_log import simulate
from sellf.errors import InputError
from sellf.fairness import Decomposition, Disparity, Notion, decompose, disparity

NOTIONS: tuple[Notion, ...] = ("opportunity", "accuracy", "qualification")
PAPER = {"ppo": (1624.64, 0.38), "sellf": (1246.24, 0.03)}
"""Reward and |Delta| in the paper's Table 1, lending, equality of opportunity."""


def train_and_compare(steps: int, seed: int) -> None:
    """Train PPO, SELLF and SELLF-direct on lending, deploy them, and print a comparison."""
    from sellf.cli.train import summary_table
    from sellf.training import run_folder
    from sellf.training.evaluation import evaluate
    from sellf.training.loop import train

    console = Console(highlight=False)
    console.print(
        "\n[bold]Lending, equality of opportunity.[/bold] A lender learns by trial whom to accept, "
        "but never\nlearns whether a rejected applicant would have repaid. PPO maximises reward "
        "alone; SELLF, the\npaper's algorithm, also reduces the imputed disparity; SELLF-direct is "
        "given omega = 0.05 and\nkeeps the disparity within it.\n"
    )
    begin = time.monotonic()
    results = {}
    folder = run_folder.free(Path("runs"), "demo")
    for algorithm in (*PAPER, "sellf-direct"):
        agent = train(
            "lending", algorithm, notion="opportunity", steps=steps, seed=seed,
            out=folder / algorithm,
        )  # fmt: skip
        results[algorithm] = evaluate(agent)
    console.print()
    console.print(summary_table(results))
    ppo, sellf, direct = (results[name] for name in ("ppo", "sellf", "sellf-direct"))
    console.print(
        f"\nPPO earns {ppo.reward:,.0f} (the paper: {PAPER['ppo'][0]:,.0f}) and accepts qualified "
        f"applicants of one race\n[bold]{ppo.disparity:.2f}[/bold] more often than of the other "
        f"(the paper: {PAPER['ppo'][1]:.2f}). Among the accepted the disparity is\n"
        f"[bold]{ppo.disparities['accepted'].mean():.2f}[/bold], as it always is: a tool that "
        "drops the rejected reports a fair lender.\n"
        f"SELLF, without a single hidden label, brings it to [bold]{sellf.disparity:.2f}[/bold] "
        f"(the paper: {PAPER['sellf'][1]:.2f}, after\nchoosing the best of twelve settings) at a "
        f"reward of {sellf.reward:,.0f} (the paper: {PAPER['sellf'][0]:,.0f}).\nSELLF-direct "
        f"reaches [bold]{direct.disparity:.2f}[/bold] at {direct.reward:,.0f}, with one training "
        "run and no setting to choose but omega.\n"
        f"[dim]One seed, {steps:,} steps each, {time.monotonic() - begin:.0f} s in all; seeds "
        "differ: see docs/results.[/dim]"
    )
    _report(console, folder)


def _report(console: Console, folder: Path) -> None:
    """Write a report that compares the runs, if the packages that it needs are installed."""
    from sellf import files, report

    try:
        report.check()
    except InputError as missing:
        console.print(f"No report: {missing.typed}", style="dim", markup=False)
        return
    page = folder / "report.html"
    files.write(page, report.runs([folder], out=page).encode())
    console.print(f"\nThe full comparison, as a report in one file: {page}", markup=False)


def show_log(people: int, seed: int) -> None:
    """Print the three views of a simulated log and their decomposition."""
    log = simulate(people, seed)
    score, accepted = log["score_class"], log["approved"]
    # The lender predicts from those it accepted, with add-one smoothing to avoid certainty.
    good, all_ = (np.bincount(score, w, minlength=10) for w in (accepted * log["repaid"], accepted))
    rows: dict[str, Any] = {"group": log["race"], "action": accepted, "label": log["repaid"]}
    seen = rows | {"label": np.where(accepted == 1, log["repaid"], np.nan)}
    naive: dict[str, Disparity] = {}
    naive |= {notion: disparity(notion, **seen, view="accepted") for notion in NOTIONS}
    predicted = ((good + 1) / (all_ + 2))[score]
    parts = {notion: decompose(notion, **rows, prediction=predicted) for notion in NOTIONS}

    console = Console(highlight=False)
    console.print(
        f"\n[bold]A lender's log of {people:,} applications[/bold] (simulated from the FICO "
        f"figures): {int(accepted.sum()):,} accepted.\nWhether a rejected applicant would "
        "have repaid is hidden from the lender, but known in this simulation.\n"
    )
    console.print(_views(naive, parts))
    console.print()
    console.print(_by_group(parts["opportunity"]))
    console.print()
    _explain(console, naive["opportunity"], parts["opportunity"])


def _views(naive: dict[str, Disparity], parts: dict[str, Decomposition]) -> Table:
    table = Table(title="Disparity between the races", title_justify="left", title_style="bold")
    table.add_column("notion")
    table.add_column("accepted only\n(most tools)", justify="right")
    table.add_column("imputed\n(predicted)", justify="right")
    table.add_column("true\n(all labels)", justify="right", style="bold")
    table.add_column("bias (imp-\nuted - true)", justify="right")
    for notion, part in parts.items():
        table.add_row(
            notion,
            f"{naive[notion].signed:+.3f}",
            f"{part.imputed.signed:+.3f}",
            f"{part.true.signed:+.3f}",
            f"{part.bias.signed:+.3f}",
        )
    return table


def _by_group(part: Decomposition) -> Table:
    table = Table(
        title="Opportunity, by race: imputed = true x kappa, kappa = 1 - r eps / phi~",
        title_justify="left",
        title_style="bold",
    )
    columns = {
        "race": [str(name) for name in part.true.by_group],
        "true": part.true.by_group.values(),
        "imputed": part.imputed.by_group.values(),
        "rejected r": part.rejection_rate.values(),
        "error eps": part.prediction_error.values(),
        "positive phi~": part.imputed_positive_rate.values(),
        "kappa": part.kappa.values(),
    }
    for name in columns:
        table.add_column(name, justify="left" if name == "race" else "right")
    for row in zip(*columns.values(), strict=True):
        table.add_row(*(cell if isinstance(cell, str) else f"{cell:.3f}" for cell in row))
    return table


def _explain(console: Console, naive: Disparity, part: Decomposition) -> None:
    worse, better = sorted(part.true.by_group, key=lambda name: part.true.by_group[name])
    rate = part.true.by_group
    console.print(
        f"[bold]What the naive view hides:[/bold] of the applicants who would repay, "
        f"{rate[better]:.0%} of the {better} and {rate[worse]:.0%} of the {worse} ones get a "
        f"loan, a gap of [bold]{part.true.value:.2f}[/bold]. Among the accepted alone the gap is "
        f"{naive.value:.2f} by definition, since all of them were accepted (Prop. 1).\n"
        f"With predictions filled in, the gap is {part.imputed.value:.2f}; its bias comes from the "
        f"predictor's error on the rejected of each group (Theorem 1; the identity holds here "
        f"to {part.residual:.0e})."
    )
