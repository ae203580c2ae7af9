"""Policies from one lending log: fairlearn on accepted rows, reject inference, `sellf.improve`.

Every method is given the same logs, in which repayment is known of the accepted only, and is asked
for equality of opportunity within 0.05. Of what it returns, disparity and reward under the law of
the world are known. What a method believes is the disparity on the rows that it was trained on.
"""

import importlib
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from fairlearn.postprocessing import ThresholdOptimizer
from fairlearn.reductions import ExponentiatedGradient, TruePositiveRateParity
from sklearn.linear_model import LogisticRegression

import sellf

ROOT = Path(__file__).resolve().parents[1]
sys.path.append(str(ROOT / "tools"))
lending = importlib.import_module("lending_log")

OMEGA = 0.05
PEOPLE = int(os.environ.get("SELLF_PEERS_PEOPLE", "50000"))
LOGS = int(os.environ.get("SELLF_PEERS_LOGS", "20"))
FITTED = 8_000
"""Rows that fairlearn's reductions are fitted on: they solve dozens of problems each."""
FLOOR = 0.2
"""The share of the current reward that `sellf.improve` must keep."""
BANDS = 10


class Answer(NamedTuple):
    """What a method returned."""

    believed: float
    chance: np.ndarray
    """Of acceptance, by profile."""


class Rows(NamedTuple):
    """Rows to train on; a good outcome counts once, a bad one as often as it costs more."""

    score: np.ndarray
    race: np.ndarray
    good: np.ndarray

    @property
    def inputs(self) -> np.ndarray:
        """The class, how it bends, and the race, which all methods may use."""
        bends = [np.maximum(self.score - at, 0) for at in (2, 4, 6)]
        return np.column_stack([self.score, *bends, self.race == "White"]).astype(float)


def costly(rows: Rows) -> Rows:
    """Return the rows with bad outcomes repeated, so that accuracy is the reward."""
    often = round(lending.COST / (1 - lending.COST))
    times = np.where(rows.good == 1, 1, often)
    return Rows(*(np.repeat(column, times) for column in rows))


def accepted_only(log: dict[str, np.ndarray], rng: np.random.Generator) -> Rows:
    """Return the accepted as they are."""
    own = log["approved"] == 1
    return Rows(log["score_class"][own], log["race"][own], log["repaid"][own])


def reweighted(log: dict[str, np.ndarray], rng: np.random.Generator) -> Rows:
    """Return accepted rows drawn by the inverse of their propensity."""
    own = np.flatnonzero(log["approved"] == 1)
    weight = 1 / log["p"][own]
    drawn = rng.choice(own, FITTED, p=weight / weight.sum())
    return Rows(log["score_class"][drawn], log["race"][drawn], log["repaid"][drawn])


def parcelled(log: dict[str, np.ndarray], rng: np.random.Generator) -> Rows:
    """Return everybody; the rejected get outcomes at the rate of the accepted in their band."""
    own = log["approved"] == 1
    inputs = log["score_class"][:, None].astype(float)
    model = LogisticRegression().fit(inputs[own], log["repaid"][own])
    guess = model.predict_proba(inputs)[:, 1]
    band = np.searchsorted(np.quantile(guess, np.arange(1, BANDS) / BANDS), guess)
    good = log["repaid"].copy()
    for k in np.unique(band):
        seen = own & (band == k)
        rate = log["repaid"][seen].mean() if seen.any() else guess[band == k].mean()
        hidden = ~own & (band == k)
        good[hidden] = rng.random(hidden.sum()) < rate
    return Rows(log["score_class"], log["race"], good)


def disparity(rows: Rows, chance: np.ndarray) -> float:
    """Return the difference of acceptance among good outcomes of some rows."""
    white, black = (
        float(chance[(rows.race == name) & (rows.good == 1)].mean()) for name in ("White", "Black")
    )
    return abs(white - black)


def some(rows: Rows, rng: np.random.Generator) -> Rows:
    """Return as many rows as are fitted."""
    if len(rows.good) <= FITTED:
        return rows
    drawn = rng.choice(len(rows.good), FITTED, replace=False)
    return Rows(*(column[drawn] for column in rows))


def reduction(train: Callable[..., Rows]) -> Callable[..., Answer]:
    """Return fairlearn's ExponentiatedGradient on some kind of rows."""

    def method(law: Any, log: dict[str, np.ndarray], seed: int) -> Answer:
        rng = np.random.default_rng(seed)
        rows = costly(some(train(log, rng), rng))
        learner: Any = ExponentiatedGradient(
            LogisticRegression(max_iter=300),
            # The bound is on the distance from the mean of all, half of that between groups.
            TruePositiveRateParity(difference_bound=OMEGA / 2),
            eps=OMEGA / 4,
            max_iter=25,
        )
        learner.fit(rows.inputs, rows.good.astype(int), sensitive_features=rows.race)
        people = profiles(law)
        chance = learner._pmf_predict(people.inputs)[:, 1]
        return Answer(disparity(rows, learner._pmf_predict(rows.inputs)[:, 1]), chance)

    return method


def thresholds(law: Any, log: dict[str, np.ndarray], seed: int) -> Answer:
    """Return fairlearn's ThresholdOptimizer on accepted rows."""
    rng = np.random.default_rng(seed)
    rows = costly(some(accepted_only(log, rng), rng))
    learner = ThresholdOptimizer(
        estimator=LogisticRegression(max_iter=300),
        constraints="true_positive_rate_parity",
        objective="accuracy_score",
        predict_method="predict_proba",
    )
    learner.fit(rows.inputs, rows.good.astype(int), sensitive_features=rows.race)

    def chances(where: Rows) -> np.ndarray:
        return learner._pmf_predict(where.inputs, sensitive_features=where.race)[:, 1]

    return Answer(disparity(rows, chances(rows)), chances(profiles(law)))


def ours(law: Any, log: dict[str, np.ndarray], seed: int) -> Answer | None:
    """Return what is certified, None if nothing is."""
    found = sellf.improve(
        log,
        features=lending.FEATURES,
        cost=lending.COST,
        omega=OMEGA,
        use_group=True,
        reward_at_least=FLOOR,
        seed=seed,
        **lending.COLUMNS,
    )
    if found.policy is None or found.chosen is None:
        return None
    bound = found.tested[found.chosen].disparity
    return Answer(float(bound or 0.0), found.policy.probability(law.columns))


def profiles(law: Any) -> Rows:
    """Return one row a profile."""
    return Rows(law.score, law.columns["group"], np.zeros(len(law.score)))


METHODS: dict[str, Callable[..., Answer | None]] = {
    "fairlearn reduction, accepted rows": reduction(accepted_only),
    "fairlearn thresholds, accepted rows": thresholds,
    "fairlearn reduction, reweighted": reduction(reweighted),
    "fairlearn reduction, parcelled": reduction(parcelled),
    "sellf.improve": ours,
}


def figures() -> dict[str, dict[str, list[float]]]:
    """Return what every method believes and what is true, one entry a log.

    Each log is kept in the folder as soon as it is done, and not done again.
    """
    folder = Path(os.environ.get("SELLF_PEERS_FOLDER", "build/improve"))
    law = lending.truth(folder)
    frontier = law.frontier(OMEGA)
    store = folder / f"peers-{PEOPLE}.jsonl"
    lines = store.read_text().splitlines() if store.exists() else []
    done = {row["seed"]: row for row in map(json.loads, lines)}
    for seed in range(LOGS):
        if seed in done:
            continue
        log = law.draw(PEOPLE, 10_000 + seed)
        row: dict[str, Any] = {"seed": seed}
        for name, method in METHODS.items():
            answer = method(law, log, seed)
            if answer is not None:
                row[name] = {
                    "believed": answer.believed,
                    "true": abs(law.gap(answer.chance)),
                    "reward": law.reward(answer.chance) / frontier,
                }
        done[seed] = row
        with store.open("a") as file:
            file.write(json.dumps(row) + "\n")
    kept = [done[seed] for seed in range(LOGS)]
    return {
        name: {
            key: [row[name][key] for row in kept if name in row]
            for key in ("believed", "true", "reward")
        }
        for name in METHODS
    }


def said(values: list[float], style: str) -> str:
    """Return a mean with its 95 % interval over logs."""
    if not values:
        return "-"
    error = 1.96 * float(np.std(values)) / len(values) ** 0.5
    return f"{np.mean(values):{style}} ± {error:{style}}"


def rows() -> list[str]:
    found = figures()
    lines = [
        f"{LOGS} logs of {PEOPLE:,} rows, omega {OMEGA}, mean ± 95 % over logs",
        "| method | returned | believes | true disparity | truly within | reward / frontier |",
        "| --- | ---: | --- | --- | ---: | --- |",
    ]
    for name, own in found.items():
        within = sum(gap <= OMEGA for gap in own["true"])
        lines.append(
            f"| {name} | {len(own['true'])} | {said(own['believed'], '.3f')} | "
            f"{said(own['true'], '.3f')} | {within} | {said(own['reward'], '.0%')} |"
        )
    picture = os.environ.get("SELLF_PEERS_PICTURE")
    if picture:
        draw(found, Path(picture))
    return lines


def draw(found: dict[str, dict[str, list[float]]], path: Path) -> None:
    """Draw what each method believes beside what is true."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(7.5, 3.1), layout="constrained")
    for place, own in enumerate(reversed(list(found.values()))):
        for values, colour, shift, marker in (
            (own["believed"], "#9aa5b1", 0.13, "o"),
            (own["true"], "#c2410c", -0.13, "D"),
        ):
            axes.plot(values, [place + shift] * len(values), marker, color=colour, ms=4, alpha=0.5)
            if values:
                axes.plot([np.mean(values)], [place + shift], "|", color=colour, ms=16, mew=3)
    axes.axvspan(0, OMEGA, color="#16a34a", alpha=0.12, lw=0)
    axes.set_yticks(range(len(found)), list(reversed(found)))
    axes.set_xlim(0, None)
    axes.set_xlabel("difference between the groups' chances, of those who would repay")
    axes.plot([], [], "o", color="#9aa5b1", label="believed (certified bound for sellf)")
    axes.plot([], [], "D", color="#c2410c", label="true")
    axes.legend(frameon=False, loc="lower right", fontsize=8)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    figure.savefig(path, dpi=150)
