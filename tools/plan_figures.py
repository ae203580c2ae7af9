"""Figures of sellf-plan: what the policies earn, how fair they are, and which certificates hold.

    python tools/plan_figures.py FOLDER                      # everything that is missing, an hour
    python tools/plan_figures.py FOLDER --only lending --seeds 10
    python tools/plan_figures.py FOLDER --table              # print the tables of what is there
    python tools/plan_figures.py FOLDER --table --out docs/results/sellf-plan

Every finished training is one line of FOLDER/NAME.jsonl; what is there is not trained again. A
training goes through `sellf.train`. Its policy is then judged under the true law, which no part of
the training has seen:

- *exact*: reward and disparity of the expected population, at 201 times of the horizon.
- *on the people*: the disparity on those whom the certificate speaks of, that is everyone met since
  the proof began, weighted by cell, each with the true chance of a good outcome. The certificate
  is false if this is above its bound (`bound`; `bound_as_met` is for the same people unweighted).
- *by chance*: the expected population over all decisions of an episode at once. The certificate
  does not speak of it, since other people are met every time; it is reported all the same.
"""

import argparse
import json
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from time import process_time
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from scipy.stats import beta

import sellf
from sellf.algorithms import trainer
from sellf.algorithms.algorithm import Task
from sellf.algorithms.knowledge import know
from sellf.fairness.notions import define
from sellf.planning import mean_field
from sellf.planning.law import Law, law_of
from sellf.training import loop, run_folder

TIMES = 201
OMEGA = 0.05
DEPLOYED, DEPLOYMENTS = 10, 10
"""So many seeds are also deployed as studies do it, so many times each."""
GOOD = 2
"""The first rows of counts are of what is wanted."""


@dataclass(frozen=True)
class Case:
    """A world, a notion, and how many trainings."""

    world: Any
    notion: str
    steps: int
    seeds: int
    world_settings: Mapping[str, Any] = field(default_factory=dict)
    deployed: int = DEPLOYED
    """How many of the trainings are deployed."""
    settings: Mapping[str, Any] = field(default_factory=dict)


CASES = {
    "lending": Case("lending", "opportunity", 51_200, 300),
    "recidivism": Case("recidivism", "accuracy", 204_800, 10, settings={"learn_share": 1.0}),
    "recidivism-proven": Case("recidivism", "accuracy", 499_712, 10, settings={"room": 0.2}),
    "school": Case("school", "opportunity", 102_400, 10),
    "lending-accuracy": Case("lending", "accuracy", 51_200, 10),
    "lending-qualification": Case("lending", "qualification", 51_200, 10),
    "recidivism-opportunity": Case("recidivism", "opportunity", 204_800, 10),
    "recidivism-qualification": Case("recidivism", "qualification", 204_800, 10),
    "school-accuracy": Case("school", "accuracy", 102_400, 10),
    "school-qualification": Case("school", "qualification", 102_400, 10),
    "races": Case("lending", "opportunity", 51_200, 10, {"groups": "all"}),
    "races-longer": Case(
        "lending", "opportunity", 204_800, 10, {"groups": "all"}, settings={"learn_share": 1.0}
    ),
}


def trained(case: Case, seed: int) -> dict[str, Any]:
    """Train once, and return what the policy and its certificate come to."""
    with tempfile.TemporaryDirectory() as folder:
        run, begun = Path(folder) / "run", process_time()
        settings: dict[str, Any] = {"omega": OMEGA} | dict(case.settings)
        agent = sellf.train(
            case.world,
            "sellf-plan",
            notion=case.notion,
            steps=case.steps,
            seed=seed,
            world_settings=case.world_settings,
            out=run,
            progress=False,
            **settings,
        )
        seconds = process_time() - begun
        people = certified(agent, run)
    if seed < case.deployed:
        shown = sellf.evaluate(agent, deployments=DEPLOYMENTS)
        people["deployed_reward"] = shown.reward
        people["deployed_exact"] = float(shown.disparities["exact"].mean())
    last = agent.history[-1]
    named = ("bound", "bound_as_met", "bound_low", "estimate", "proven_people", "planned")
    explored = [row["exploration_cost"] for row in agent.history[:-1]]
    return {
        "seed": seed,
        "omega": agent.config["omega"],
        **exact(law_of(agent.world), agent.notion, favoured(agent)),
        **people,
        **{name: last[name] for name in named},
        "explored": float(np.sum(explored)) * agent.config["rollout"],
        "seconds": seconds,
        "statement": agent.statement,
    }


def favoured(agent: Any) -> np.ndarray:
    """Return the chance of each action, by profile."""
    log_odds = agent.tables()[0].astype(np.float64)
    odds = np.exp(np.concatenate([np.zeros_like(log_odds[:1]), log_odds]))
    return odds / odds.sum(axis=0)


def exact(law: Law, notion: str, policy: np.ndarray) -> dict[str, float]:
    """Return what a policy comes to in the expected population."""
    rates = define(notion).rates
    found = mean_field.course(law, rates, mean_field.even(law, 1, TIMES), policy[None])
    gaps = np.ptp(found.rates, axis=2).max(axis=1)
    met = mean_field.met(law, policy, mean_field.visits(law))
    return {
        "reward": found.reward,
        "disparity": float(gaps.max()),
        "disparity_mean": float(gaps.mean()),
        "by_chance": disparity(law, notion, policy, met),
    }


def disparity(law: Law, notion: str, policy: np.ndarray, people: np.ndarray) -> float:
    """Return the disparity of a policy on so many people of each profile, by the true law."""
    accept, found = policy[np.asarray(law.favourable)].sum(axis=0), 0.0
    for rate in define(notion).rates:
        (above, level), (below, floor) = (sums.by_label(accept) for sums in rate.sums)
        top = np.bincount(law.group, (above * law.alpha + level) * people, len(law.groups))
        under = np.bincount(law.group, (below * law.alpha + floor) * people, len(law.groups))
        found = max(found, float(np.ptp(top / under)))
    return found


def certified(agent: Any, folder: Path) -> dict[str, float]:
    """Return the true disparity on the people whom a certificate speaks of, from the checkpoint."""
    spec, run = agent.spec, run_folder.open_run(folder)
    problem = trainer.simulated(agent.world, spec.notion, spec.iterations)
    config = jax.tree.map(lambda leaf: jnp.asarray(leaf, jnp.float32), spec.config)
    begin, _ = loop.program(spec.algorithm, batched=False)
    state, _ = run.restore(begin(problem, config, jax.random.key(spec.seed)))
    extra = jax.tree.map(np.asarray, state.extra)
    world, law = agent.world, law_of(agent.world)
    actor = spec.algorithm.stacks(world.space)[0].actor
    task = Task(world.space, spec.notion, spec.iterations, actor, world.population, world.horizon)
    known = know(task, spec.config, spec.iterations, extra)
    log, first = extra["log"], int(extra["proof"].begun) * spec.config.rollout
    decided = np.arange(len(log.profile)) < spec.iterations * spec.config.rollout
    gain = np.asarray(law.gain)[log.action[decided], log.profile[decided]]
    if not first:
        return {"on_people": float("nan"), "as_met": float("nan"), "earned": float(gain.sum())}
    weight = known.changed(np.asarray(extra["plan"], np.float64), known.decided, first)
    profile, policy = log.profile[first:], favoured(agent)
    each = weight[known.cell[first:]]
    weighted, plain = (
        np.bincount(profile, own, law.profiles) for own in (each, np.ones(len(profile)))
    )
    return {
        "on_people": disparity(law, spec.notion, policy, weighted),
        "as_met": disparity(law, spec.notion, policy, plain),
        "earned": float(gain.sum()),
    }


def below(number: int, of: int, level: float = 0.95) -> float:
    """Return the Clopper-Pearson bound that a share is below with 95 %."""
    return float(beta.ppf(level, number + 1, of - number)) if number < of else 1.0


def table(name: str, case: Case, rows: list[dict[str, Any]]) -> str:
    """Return a case's figures in Markdown."""

    def column(key: str) -> np.ndarray:
        return np.array([row[key] for row in rows])

    number, omega = len(rows), column("omega")
    proven = column("bound") <= omega
    # An undefined bound or disparity proves nothing and is none.
    false = column("on_people") > column("bound")
    shares = {
        "exact disparity within omega at every time": column("disparity") <= omega,
        "certified": proven,
        "certificates above whose bound the people's true disparity is": false & proven,
        "... above omega": (column("on_people") > omega) & proven,
        "bounds that are false, certified or not": false,
        "... for the people as they were met": column("as_met") > column("bound_as_met"),
        "certified, by chance above omega": (column("by_chance") > omega) & proven,
        "certified, exact disparity above omega at some time": (column("disparity") > omega)
        & proven,
    }
    spreads = {
        "reward": ("reward", "{:,.1f}"),
        "largest exact disparity": ("disparity", "{:.4f}"),
        "exact disparity, mean over time": ("disparity_mean", "{:.4f}"),
        "true disparity on the people": ("on_people", "{:.4f}"),
        "bound": ("bound", "{:.4f}"),
        "cost of exploration, as estimated": ("explored", "{:,.0f}"),
        "earned in the whole training": ("earned", "{:,.0f}"),
        "CPU seconds, compiled": ("seconds", "{:.1f}"),
    }
    given = "".join(f", {key} {value:g}" for key, value in case.settings.items())
    head = f"{name}: {case.notion}, {case.steps:,} decisions{given}, {number} seeds"
    lines = [f"| {head} | |", "| --- | --- |"]
    proof = np.isfinite(column("on_people")).any()
    for label, (key, form) in spreads.items():
        own = column(key)
        if not proof and key in ("on_people", "bound"):
            continue
        ends = f"{form.format(own.min())} to {form.format(own.max())}"
        lines.append(f"| {label} | {form.format(own.mean())} ({ends}) |")
    for place, (label, which) in enumerate(shares.items()):
        if place and not proof:
            break
        count = int(which.sum())
        # Of what must not happen, how often it may at most.
        limit = f" (below {below(count, number):.1%} with 95 %)" if place >= GOOD else ""
        lines.append(f"| {label} | {count} of {number}{limit} |")
    return "\n".join(lines)


def read(path: Path) -> list[dict[str, Any]]:
    """Return what was finished, by seed."""
    lines = path.read_text().splitlines() if path.is_file() else []
    return sorted((json.loads(line) for line in lines), key=lambda row: row["seed"])


def finish(path: Path, case: Callable[[int], Case], seeds: int, name: str) -> None:
    """Do the trainings that are missing.

    Args:
        path: where each is a line.
        case: what to train with a seed.
        seeds: how many there are to be.
        name: for the progress.
    """
    there = {row["seed"] for row in read(path)}
    missing = [seed for seed in range(seeds) if seed not in there]
    if not missing:
        return
    # Compiles what the others use, so that their times are without it.
    trained(case(missing[0]), missing[0])
    for count, seed in enumerate(missing):
        row = trained(case(seed), seed)
        with path.open("a") as file:
            file.write(json.dumps(row) + "\n")
        print(
            f"{name}: {len(there) + count + 1} of {seeds}: reward {row['reward']:,.1f}, disparity "
            f"{row['disparity']:.4f}, bound {row['bound']:.4f}, {row['seconds']:.1f} s",
            file=sys.stderr,
            flush=True,
        )


def study(folder: Path, found: dict[str, list[dict[str, Any]]]) -> None:
    """Write the tables, and the means over deployed seeds in the columns of a study's table.

    Cases without trainings here keep the tables that they have in the folder.
    """
    folder.mkdir(parents=True, exist_ok=True)
    old_tables, old_lines = earlier(folder)
    made = {name: table(name, CASES[name], rows) for name, rows in found.items() if rows}
    texts = [(old_tables | made)[name] for name in CASES if name in old_tables | made]
    command = "python tools/plan_figures.py FOLDER"
    (folder / "table.md").write_text(
        f"# sellf-plan\n\nWritten by `{command} --out docs/results/sellf-plan`.\n\n"
        + "\n\n".join(texts)
        + "\n"
    )
    heads = "study,world,world_settings,notion,algorithm,seeds,steps,deployments,exact,reward"
    lines = [f"# command: {command}", heads]
    for name, case in CASES.items():
        own = [row for row in found.get(name, []) if row["seed"] < DEPLOYED]
        if not own:
            lines += [line for key, line in old_lines.items() if key == name]
            continue
        # Of trainings that were not deployed: the expected population.
        deployed = all("deployed_exact" in row for row in own)
        keys = ("deployed_exact", "deployed_reward") if deployed else ("disparity_mean", "reward")
        means = ",".join(str(np.mean([row[key] for row in own])) for key in keys)
        settings = json.dumps(dict(case.world_settings)).replace('"', '""')
        lines.append(
            f'sellf-plan,{case.world},"{settings}",{case.notion},sellf-plan,{len(own)},'
            f"{case.steps},{DEPLOYMENTS if deployed else 0},{means}"
        )
    (folder / "table.csv").write_text("\n".join(lines) + "\n")


def earlier(folder: Path) -> tuple[dict[str, str], dict[str, str]]:
    """Return the tables, and the lines of table.csv, that a folder has, by case."""
    page, lines = folder / "table.md", folder / "table.csv"
    if not page.is_file() or not lines.is_file():
        return {}, {}
    parts = [part.strip() for part in page.read_text().split("\n\n") if part.startswith("| ")]
    tables = {part[2:].partition(":")[0]: part for part in parts}
    rows = [line for line in lines.read_text().splitlines()[2:] if line]
    return tables, dict(zip(tables, rows, strict=True))


def main(arguments: list[str] | None = None) -> int:
    """Train what is missing, and print the tables."""
    parser = argparse.ArgumentParser(description="Figures of sellf-plan.")
    parser.add_argument("folder", type=Path, help="where finished trainings are kept")
    parser.add_argument("--only", nargs="*", choices=list(CASES), default=list(CASES))
    parser.add_argument("--seeds", type=int, help="at most so many of each")
    parser.add_argument("--table", action="store_true", help="train nothing")
    parser.add_argument("--out", type=Path, help="a folder for table.md and table.csv")
    options = parser.parse_args(arguments)
    options.folder.mkdir(parents=True, exist_ok=True)
    found: dict[str, list[dict[str, Any]]] = {}
    for name in options.only:
        case, path = CASES[name], options.folder / f"{name}.jsonl"
        seeds = case.seeds if options.seeds is None else min(options.seeds, case.seeds)
        if not options.table:
            finish(path, lambda _, own=case: own, seeds, name)
        found[name] = rows = read(path)
        if rows:
            print(table(name, case, rows), end="\n\n", flush=True)
    if options.out is not None:
        study(options.out, found)
    return 0


if __name__ == "__main__":
    sys.exit(main())
