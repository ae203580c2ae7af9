"""Training: the Python loop around compiled iterations, its progress, its files and its end."""

from collections.abc import Iterable, Mapping
from contextlib import ExitStack, nullcontext
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from sellf import loggers, runs
from sellf.agent import Agent
from sellf.algorithms import catalogue, trainer
from sellf.algorithms.algorithm import Algorithm
from sellf.algorithms.config import PPO, as_dict
from sellf.algorithms.trainer import TrainState
from sellf.compiling import compiled, use_cache
from sellf.envs import saving
from sellf.envs.world import World
from sellf.errors import InputError
from sellf.fairness import NOTIONS, Notion, define
from sellf.fairness.checks import number, short, whole
from sellf.fairness.checks import seed as check_seed
from sellf.loggers import Choice, Log
from sellf.progress import Interrupt, Progress

STEPS = 500_000
MOST_STEPS = 10**12


class DivergedError(InputError):
    """A loss became NaN; the message says which and where the last good checkpoint is."""


@dataclass(frozen=True)
class Plan:
    """Everything a training needs to know, resolved."""

    world: World
    algorithm: str
    notion: Notion
    config: dict[str, Any]
    seed: int
    steps: int
    settings: dict[str, Any]
    """Of the world, if it is made by name."""
    log: tuple[Choice, ...] = ()
    """Where to log, besides the run's own metrics."""

    @property
    def title(self) -> str:
        """What a run is called that was given no name."""
        return loggers.file_name(f"{self.world.name}-{self.algorithm}-{self.notion}-{self.seed}")

    @property
    def iterations(self) -> int:
        """How many rollouts the steps come to."""
        return -(-self.steps // self.config["rollout"])


def train(
    world: World | str = "lending",
    algorithm: str = "sellf-direct",
    *,
    notion: Notion = "opportunity",
    steps: int = STEPS,
    seed: int = 0,
    seeds: Iterable[int] | None = None,
    configs: Iterable[Mapping[str, Any]] | None = None,
    world_settings: Mapping[str, Any] | None = None,
    out: str | Path | None = None,
    progress: bool = True,
    log: Choice | Iterable[Choice] | None = None,
    **settings: Any,
) -> Any:
    """Train an agent; or many, side by side in one program.

    Args:
        world: a world, or the name of one.
        algorithm: "sellf-direct", "sellf", "sellf-semi", "sellf-relu", "ppo", "pocar",
            "pocar-oracle", "elbert" or "focops".
        notion: "opportunity", "accuracy", "qualification", or another that needs labels; see
            `sellf.disparity`.
        steps: how many decisions to learn from, rounded up to whole rollouts.
        seed: the same seed gives the same agent, bit for bit, on the same machine.
        seeds: several, to train with each of them.
        configs: several settings, to train with each of them (and each seed). Numbers may differ
            between them; whatever shapes the program (whole numbers, words) must be the same.
        world_settings: of the world, as in `sellf.make_world`.
        out: a folder for the run: configuration, metrics, checkpoints, the agent. One run only.
        progress: whether to show how it goes.
        log: "tensorboard", "wandb" or "mlflow", a function `log(iteration, row)`, or a list of
            these. Files go into `out`, or into a new folder under runs/.
        settings: of the algorithm, for example `beta_disparity=5`.

    Returns:
        The agent; a list of them, configs by seeds, if `seeds` or `configs` are given.
    """
    if not define(notion).needs_label:
        others = ", ".join(repr(name) for name in NOTIONS if define(name).needs_label)
        raise InputError(
            f"notion is {notion!r}, which needs no label: training here is about labels that are "
            f"hidden. Train on one of {others}."
        )
    own = dict(world_settings or {})
    made = _world(world, own)
    number("steps", steps, low=1)
    logs = loggers.chosen(log)
    listed = [dict(config) for config in configs] if configs is not None else [{}]
    if seeds is not None and not isinstance(seeds, Iterable):
        raise InputError(
            f"seeds is {short(seeds)}: give several, for example range({short(seeds)})."
        )
    chosen = list(seeds) if seeds is not None else [seed]
    if not listed or not chosen:
        raise InputError("configs or seeds is empty: give at least one of each.")
    plans = [
        Plan(
            made,
            algorithm,
            notion,
            as_dict(catalogue.resolve(algorithm, settings | config)[1]),
            check_seed("seed", one),
            whole("steps", steps, low=1, high=MOST_STEPS),
            own,
            logs,
        )
        for config in listed
        for one in chosen
    ]
    if out is not None and len(plans) > 1:
        raise InputError(
            "out is one run's folder: train one configuration with one seed, or save each agent."
        )
    if len(plans) == 1:
        run = runs.create(Path(out), plans[0]) if out is not None else None
        agent = _run(plans[0], run, progress)
        return [agent] if seeds is not None or configs is not None else agent
    return train_batch(plans, progress=progress)


def _world(world: World | str, settings: dict[str, Any]) -> World:
    if isinstance(world, str):
        return saving.named(world, settings)
    if settings:
        raise InputError(
            "world_settings are for a world by name: change the world that is given, or give its "
            "name, world='lending'."
        )
    return world


def resume(
    folder: str | Path, progress: bool = True, log: Choice | Iterable[Choice] | None = None
) -> Agent:
    """Go on with a run that was stopped; it ends as if it never had been.

    Args:
        folder: of the run.
        progress: whether to show how it goes.
        log: as for `train`; by default where the run was logged before.
    """
    run = runs.open_run(Path(folder))
    plan = Plan(**run.plan)
    logs = loggers.chosen(plan.log if log is None else log)
    return _run(replace(plan, log=logs), run, progress)


def train_plan(plan: Plan) -> Agent:
    """Train one run without showing or keeping anything of it."""
    return _run(plan, None, progress=False)


def prepare(plan: Plan) -> None:
    """Compile the program of a run, and do an iteration with it."""
    hooks, config = catalogue.resolve(plan.algorithm, plan.config)
    use_cache()
    task = trainer.simulated(plan.world, plan.notion, plan.iterations)
    config = jax.tree.map(lambda leaf: jnp.asarray(leaf, jnp.float32), config)
    init, iterate = program(hooks, batched=False)
    jax.block_until_ready(iterate(task, config, init(task, config, jax.random.key(plan.seed))))


def train_batch(plans: list[Plan], progress: bool = True) -> list[Agent]:
    """Train many runs of one program side by side."""
    first = plans[0]
    hooks, configs = _same_program(plans)
    use_cache()
    task = trainer.simulated(first.world, first.notion, first.iterations)
    config = jax.tree.map(lambda *leaves: jnp.asarray(leaves, jnp.float32), *configs)
    keys = jnp.stack([jax.random.key(plan.seed) for plan in plans])
    init, iterate = program(hooks, batched=True)
    state = init(task, config, keys)
    history: list[list[dict[str, Any]]] = [[] for _ in plans]
    with Progress(first, progress, runs=len(plans)) as bar, ExitStack() as stack:
        logs = [stack.enter_context(log) for log in _batch_logs(plans, progress)]
        for i in range(first.iterations):
            state, metrics = iterate(task, config, state)
            rows = _unbatch(metrics, len(plans))
            for j, row in enumerate(rows):
                _check(row, i, None)
                history[j].append({"iteration": i, **row})
                logs[j].log(i, history[j][-1])
            bar.show(i, rows)
    return [
        _agent(plan, hooks, jax.tree.map(lambda leaf, j=j: leaf[j], state), history[j])
        for j, plan in enumerate(plans)
    ]


@lru_cache(maxsize=64)
def program(hooks: Algorithm, batched: bool) -> tuple[Any, Any]:
    """Return an algorithm's compiled `init` and `iterate`; the same ones when asked again."""
    init, iterate = partial(trainer.init, hooks), partial(trainer.iterate, hooks)
    if batched:
        init, iterate = (jax.vmap(f, in_axes=(None, 0, 0)) for f in (init, iterate))
    return compiled(init), compiled(iterate, donate_argnums=2)


def _same_program(plans: list[Plan]) -> tuple[Algorithm, list[PPO]]:
    """Refuse runs that one compiled program cannot train together."""
    resolved = [catalogue.resolve(plan.algorithm, plan.config) for plan in plans]
    shapes = {str(jax.tree.structure(config)) for _, config in resolved}
    if len(shapes) > 1:
        fixed = [k for k, v in plans[0].config.items() if not isinstance(v, float)]
        differ = [k for k in fixed if len({str(plan.config[k]) for plan in plans}) > 1]
        raise InputError(
            f"configs differ in {', '.join(differ)}, which shapes the program: train those apart."
        )
    return resolved[0][0], [config for _, config in resolved]


def _run(plan: Plan, run: "runs.Run | None", progress: bool) -> Agent:
    """Train one run, from its last checkpoint if it has one."""
    with run.alone() if run is not None else nullcontext(), Interrupt() as interrupt:
        return _train(plan, run, progress, interrupt)


def _train(plan: Plan, run: "runs.Run | None", progress: bool, interrupt: Interrupt) -> Agent:
    hooks, config = catalogue.resolve(plan.algorithm, plan.config)
    use_cache()
    task = trainer.simulated(plan.world, plan.notion, plan.iterations)
    config = jax.tree.map(lambda leaf: jnp.asarray(leaf, jnp.float32), config)
    init, iterate = program(hooks, batched=False)
    state = init(task, config, jax.random.key(plan.seed))
    history: list[dict[str, Any]] = []
    if run is not None:
        state, history = run.restore(state)
    done = len(history)
    folder = run.folder if run is not None else runs.free(Path("runs"), plan.title)
    log = Log(plan, folder, history=history, kept=run is not None, shown=progress)
    with Progress(plan, progress, begun=done) as bar, log:
        for i in range(done, plan.iterations):
            state, metrics = iterate(task, config, state)
            row = _plain(metrics)
            _check(row, i, run)
            history.append({"iteration": i, **row})
            bar.show(i, [row])
            try:
                log.log(i, history[-1])
            except BaseException:
                if run is not None:
                    run.record(i, history[-1], state, last=True)
                raise
            if run is not None:
                run.record(i, history[-1], state, last=i == plan.iterations - 1)
            if interrupt.asked:
                if run is not None:
                    run.save(state)
                    bar.say(f"stopped and saved: type `sellf train --resume {run.folder}`.")
                raise KeyboardInterrupt
        agent = _agent(plan, hooks, state, history)
        # Before logs are closed: sending the rest of them may take a while, or never end.
        if run is not None:
            run.finish(agent)
    return agent


def _batch_logs(plans: list[Plan], shown: bool) -> list[Log]:
    """Return a log for each of the runs that are trained together."""
    first = plans[0]
    name = loggers.file_name(f"{first.world.name}-{first.algorithm}-{first.notion}")
    folder = runs.free(Path("runs"), name)
    return [
        Log(plan, folder / title, shown=shown, batch=folder.name, place=place)
        for place, (plan, title) in enumerate(zip(plans, loggers.titles(plans), strict=True))
    ]


def _agent(plan: Plan, hooks: Algorithm, state: TrainState, history: list[dict[str, Any]]) -> Agent:
    predictor = state.extra["predictor"].parameters if hooks.predictor is not None else None
    return Agent(
        plan.world,
        plan.algorithm,
        plan.notion,
        plan.config,
        plan.seed,
        state.learner.parameters,
        predictor,
        plan.settings,
        history,
    )


def _check(row: dict[str, Any], iteration: int, run: "runs.Run | None") -> None:
    """Stop at the first number that is none."""
    bad = [name for name, value in row.items() if not np.all(np.isfinite(value))]
    if bad:
        kept = ""
        if run is not None:
            kept = (
                f" The last good checkpoint is in {run.folder}."
                if run.checkpoint.is_file()
                else f" There is no checkpoint yet: {run.folder} can be removed."
            )
        raise DivergedError(
            f"{', '.join(bad)} is not a number in iteration {iteration}: the learning rate or a "
            f"weight is probably too large.{kept}"
        )


def _plain(metrics: Mapping[str, Any]) -> dict[str, Any]:
    return {name: np.asarray(value).tolist() for name, value in metrics.items()}


def _unbatch(metrics: Mapping[str, Any], number: int) -> list[dict[str, Any]]:
    arrays = {name: np.asarray(value) for name, value in metrics.items()}
    return [{name: value[j].tolist() for name, value in arrays.items()} for j in range(number)]
