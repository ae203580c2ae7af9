"""The training loop around compiled iterations, with progress, checkpoints and logging."""

from collections.abc import Iterable, Mapping
from contextlib import ExitStack, nullcontext
from dataclasses import replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from sellf import interrupts
from sellf.algorithms import trainer
from sellf.algorithms.adam import Learner
from sellf.algorithms.algorithm import Algorithm
from sellf.algorithms.catalogue import find
from sellf.algorithms.config import Settings
from sellf.algorithms.trainer import TrainState
from sellf.compiling import compiled, use_cache
from sellf.envs.world import World
from sellf.errors import InputError
from sellf.fairness import Notion
from sellf.interrupts import DeferredInterrupt
from sellf.training import loggers, run_folder
from sellf.training.agent import Agent, load
from sellf.training.loggers import Choice, Log
from sellf.training.metrics import MAY_BE_UNDEFINED
from sellf.training.progress import Progress
from sellf.training.run_folder import Run
from sellf.training.spec import RunSpec, resolve

STEPS = 500_000


class DivergedError(InputError):
    """Raised if a metric is not finite; the message names it and the last good checkpoint."""


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
    continue_from: Agent | str | Path | None = None,
    **settings: Any,
) -> Any:
    """Train an agent, or several agents side by side in one program.

    Args:
        world: a world or its name.
        algorithm: "sellf-direct", "sellf-plan", "sellf", "sellf-semi", "sellf-relu", "ppo",
            "pocar", "pocar-oracle", "elbert", "focops", "ppo-lagrangian", "pid-lagrangian" or
            "cup".
        notion: "opportunity", "accuracy", "qualification", or another that needs labels; see
            `sellf.disparity`.
        steps: number of decisions to learn from, rounded up to whole rollouts.
        seed: the same seed gives the same agent, bit for bit, on the same machine.
        seeds: several seeds, to train with each of them.
        configs: several settings, to train with each of them (and each seed). Real numbers may
            differ between them; settings that shape the program (integers, words) must be equal.
        world_settings: settings of the world, as in `sellf.make_world`.
        out: a folder for the run: configuration, metrics, checkpoints, the agent. One run only.
        progress: whether to show the progress.
        log: "tensorboard", "wandb" or "mlflow", a function `log(iteration, row)`, or a list of
            these. Files go into `out`, or into a new folder under runs/.
        continue_from: an agent, or its folder, to continue from: the networks and the label
            predictor are initialized from it, and learn from new decisions. One run only, of the
            same algorithm; settings that are not given are those of the agent.
        settings: settings of the algorithm, for example `beta_disparity=5`.

    Returns:
        The agent; a list of agents, configs by seeds, if `seeds` or `configs` are given.
    """
    logs = loggers.chosen(log)
    listed = _several("configs", configs) if configs is not None else [{}]
    chosen = _several("seeds", seeds) if seeds is not None else [seed]
    make = partial(
        resolve, world, algorithm, notion, steps=steps, world_settings=world_settings or {}
    )
    first = load(continue_from) if isinstance(continue_from, str | Path) else continue_from
    settings = settings if first is None else first.config | settings
    specs = [make(seed=s, settings=settings | dict(c)) for c in listed for s in chosen]
    specs = specs if first is None else [_continued(spec, first) for spec in specs]
    if first is not None and len(specs) > 1:
        raise InputError("continue_from is for one run: train with one seed and configuration.")
    if out is not None and len(specs) > 1:
        raise InputError("out is one run's folder: train one configuration with one seed.")
    if len(specs) == 1:
        run = run_folder.create(Path(out), specs[0], logs) if out is not None else None
        agent = _run(specs[0], run, progress, logs, first)
        return [agent] if seeds is not None or configs is not None else agent
    return train_batch(specs, progress, logs)


def _continued(spec: RunSpec, first: Agent) -> RunSpec:
    """Return the run as a continuation of an agent, with its scales; refuse what cannot be."""
    if spec.algorithm != first.spec.algorithm:
        raise InputError(
            f"the agent to continue from was trained with {first.algorithm}, not "
            f"{spec.algorithm.name}: name the same algorithm and settings."
        )
    if spec.algorithm.decide is not None:
        raise InputError(
            f"{first.algorithm} plans from all its decisions, which an agent does not contain: "
            "train a new agent, or resume a stopped run with `sellf train --resume FOLDER`."
        )
    moved = first.in_world(spec.world.make()).spec.world
    own = spec.world if moved.make() is spec.world.make() else moved
    return replace(spec, world=own, origin=first.fingerprint)


def _from_agent(state: TrainState, first: Agent) -> TrainState:
    """Return the state of a training that starts with an agent's networks."""
    # Copies, since an iteration donates the buffers of its input.
    learner = Learner.new(jnp.array(first.parameters))
    if first.predictor is None:
        return state._replace(learner=learner)
    kept = state.extra["predictor"]
    kept = kept._replace(learner=Learner.new(jnp.array(first.predictor)))
    return state._replace(learner=learner, extra=state.extra | {"predictor": kept})


def _several(name: str, given: Any) -> list[Any]:
    """Return the given values as a list; refuse anything else and empty lists."""
    example = {"seeds": "seeds=range(3)", "configs": "configs=[{'omega': 0.05}, {'omega': 0.1}]"}
    if isinstance(given, str | Mapping) or not isinstance(given, Iterable):
        raise InputError(f"{name} is {given!r}: give a list, for example {example[name]}.")
    listed = list(given)
    if not listed:
        raise InputError(f"{name} is empty: give at least one, for example {example[name]}.")
    return listed


def resume(
    folder: str | Path, progress: bool = True, log: Choice | Iterable[Choice] | None = None
) -> Agent:
    """Resume a stopped run; the result is the same as without the interruption.

    Args:
        folder: folder of the run.
        progress: whether to show the progress.
        log: as for `train`; by default, as the run was logged before.
    """
    run = run_folder.open_run(Path(folder))
    return _run(run.spec, run, progress, loggers.chosen(run.logs if log is None else log))


def train_spec(spec: RunSpec) -> Agent:
    """Train one run without showing progress or writing files."""
    return _run(spec, None, progress=False)


def prepare(spec: RunSpec) -> None:
    """Compile the program of a run, and execute one iteration of it."""
    use_cache()
    task, config = _inputs(spec)
    init, iterate = program(spec.algorithm, batched=False)
    jax.block_until_ready(iterate(task, config, init(task, config, jax.random.key(spec.seed))))


def _inputs(spec: RunSpec) -> tuple[trainer.Problem, Settings]:
    """Return the arguments of the compiled program of a run."""
    config = jax.tree.map(lambda leaf: jnp.asarray(leaf, jnp.float32), spec.config)
    return trainer.simulated(spec.world.make(), spec.notion, spec.iterations), config


def train_batch(
    specs: list[RunSpec], progress: bool = True, logs: tuple[Choice, ...] = ()
) -> list[Agent]:
    """Train several runs of one program side by side."""
    first = specs[0]
    _check_same_program(specs)
    use_cache()
    config = jax.tree.map(
        lambda *leaves: jnp.asarray(leaves, jnp.float32), *(spec.config for spec in specs)
    )
    keys = jnp.stack([jax.random.key(spec.seed) for spec in specs])
    history: list[list[dict[str, Any]]] = [[] for _ in specs]
    with Progress(first, progress, runs=len(specs)) as bar, ExitStack() as stack:
        task, _ = _inputs(first)
        # Variant for the largest settings: a term is left out only if its weight is 0 in all runs.
        largest = jax.tree.map(lambda *leaves: max(leaves), *(spec.config for spec in specs))
        algorithm = find(first.algorithm.name)
        hooks = algorithm.variant(algorithm, largest, first.notion)
        init, iterate = program(hooks, batched=True)
        state = init(task, config, keys)
        opened = [stack.enter_context(log) for log in _batch_logs(specs, logs, progress)]
        for i in range(first.iterations):
            state, metrics = iterate(task, config, state)
            rows = _unbatch(metrics, len(specs))
            for j, row in enumerate(rows):
                _check(row, i, None)
                history[j].append({"iteration": i, **row})
                opened[j].log(i, history[j][-1])
            bar.update(i, rows)
    return [
        _agent(spec, own, rows)
        for spec, own, rows in zip(specs, _each(state, len(specs)), history, strict=True)
    ]


@lru_cache(maxsize=64)
def program(hooks: Algorithm, batched: bool) -> tuple[Any, Any]:
    """Return an algorithm's compiled `init` and `iterate`, cached."""
    init, iterate = partial(trainer.init, hooks), partial(trainer.iterate, hooks)
    if batched:
        init, iterate = (jax.vmap(f, in_axes=(None, 0, 0)) for f in (init, iterate))
    init, iterate = compiled(init), compiled(iterate, donate_argnums=2)
    if hooks.decide is None:
        return init, iterate
    decide = partial(_decided, hooks, batched)

    def begin(task: trainer.Problem, config: Any, key: Any) -> TrainState:
        return decide(task, config, init(task, config, key))[0]

    def go_on(task: trainer.Problem, config: Any, state: TrainState) -> Any:
        state, measured = iterate(task, config, state)
        state, figures = decide(task, config, state)
        return state, measured | figures

    return begin, go_on


def _decided(
    hooks: Algorithm, batched: bool, task: trainer.Problem, config: Any, state: TrainState
) -> Any:
    """Run the uncompiled decision step of an algorithm, for batched runs one after the other."""
    if not batched:
        return trainer.decided(hooks, task, jax.tree.map(float, config), state)
    found = [
        trainer.decided(hooks, task, jax.tree.map(lambda x, j=j: float(x[j]), config), own)
        for j, own in enumerate(_each(state, state.iteration.shape[0]))
    ]
    states, figures = zip(*found, strict=True)
    return (
        jax.tree.map(lambda *leaves: jnp.stack(leaves), *states),
        {name: np.stack([own[name] for own in figures]) for name in figures[0]},
    )


def _each(state: TrainState, number: int) -> list[TrainState]:
    return [jax.tree.map(lambda leaf, j=j: leaf[j], state) for j in range(number)]


def _check_same_program(specs: list[RunSpec]) -> None:
    """Refuse runs that one compiled program cannot train together."""
    shapes = {str(jax.tree.structure(spec.config)) for spec in specs}
    if len(shapes) > 1:
        settings = [spec.hyperparameters for spec in specs]
        fixed = [name for name, value in settings[0].items() if not isinstance(value, float)]
        differ = [name for name in fixed if len({str(own[name]) for own in settings}) > 1]
        raise InputError(
            f"configs differ in {', '.join(differ)}, which shapes the program: train them apart."
        )


def _run(
    spec: RunSpec,
    run: Run | None,
    progress: bool,
    logs: tuple[Choice, ...] = (),
    first: Agent | None = None,
) -> Agent:
    """Train one run, from its last checkpoint if it has one."""
    with run.alone() if run is not None else nullcontext(), DeferredInterrupt() as interrupt:
        return _train(spec, run, progress, logs, interrupt, first)


def _begin(state: TrainState, spec: RunSpec, run: Run | None, first: Agent | None) -> Any:
    """Return the state that training starts from, and the metrics so far."""
    if first is not None:
        state = _from_agent(state, first)
        if run is not None:
            # Such that a run that is stopped at once still has its initial state.
            run.begin(state)
    if run is None:
        return state, []
    if spec.origin and not run.checkpoint.exists():
        raise InputError(
            f"{run.folder} was stopped before the agent to continue from was stored: remove it "
            "and train again."
        )
    return run.restore(state)


def _train(
    spec: RunSpec,
    run: Run | None,
    progress: bool,
    logs: tuple[Choice, ...],
    interrupt: DeferredInterrupt,
    first: Agent | None,
) -> Agent:
    use_cache()
    with Progress(spec, progress) as bar:
        task, config = _inputs(spec)
        init, iterate = program(spec.algorithm, batched=False)
        with interrupts.nothing_to_lose():
            state = init(task, config, jax.random.key(spec.seed))
        state, history = _begin(state, spec, run, first)
        done = len(history)
        bar.begin(done)
        folder = run.folder if run is not None else run_folder.free(Path("runs"), title(spec))
        with Log(spec, logs, folder, history=history, kept=run is not None, shown=progress) as log:
            for i in range(done, spec.iterations):
                # The first iteration compiles the program, which takes a while.
                with interrupts.nothing_to_lose() if i == done else nullcontext():
                    state, metrics = iterate(task, config, state)
                    row = _plain(metrics)
                _check(row, i, run)
                history.append({"iteration": i, **row})
                bar.update(i, [row])
                last = i == spec.iterations - 1
                _record(log, run, i, history[-1], state, last=last)
                if interrupt.requested:
                    if run is None:
                        raise KeyboardInterrupt
                    run.save(state)
                    raise KeyboardInterrupt(
                        f"stopped and saved: type `sellf train --resume {run.folder}`."
                    )
            agent = _agent(spec, state, history)
            # Before logs are closed, since sending the rest may take long or never end.
            if run is not None:
                run.finish(agent)
    return agent


def _record(
    log: Log, run: Run | None, iteration: int, row: dict[str, Any], state: TrainState, *, last: bool
) -> None:
    """Log an iteration and record it in the run folder, even if logging fails."""
    try:
        log.log(iteration, row)
    except BaseException:
        last = True
        raise
    finally:
        if run is not None:
            run.record(iteration, row, state, last=last)


def title(spec: RunSpec) -> str:
    """Return the default name of a run."""
    return loggers.file_name(f"{spec.world.name}-{spec.algorithm.name}-{spec.notion}-{spec.seed}")


def _batch_logs(specs: list[RunSpec], logs: tuple[Choice, ...], shown: bool) -> list[Log]:
    """Return a log for each run that is trained in the batch."""
    folder = run_folder.free(Path("runs"), title(specs[0]).rpartition("-")[0])
    return [
        Log(spec, logs, folder / name, shown=shown, batch=folder.name, index=index)
        for index, (spec, name) in enumerate(zip(specs, loggers.titles(specs), strict=True))
    ]


def _agent(spec: RunSpec, state: TrainState, history: list[dict[str, Any]]) -> Agent:
    predictor = state.extra["predictor"].parameters if spec.has_predictor else None
    return Agent(spec, state.learner.parameters, predictor, history)


def _check(row: dict[str, Any], iteration: int, run: Run | None) -> None:
    """Raise an error if a metric is not finite."""
    bad = [n for n, value in row.items() if value is not None and not np.all(np.isfinite(value))]
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
    return {name: _known(name, np.asarray(value)) for name, value in metrics.items()}


def _known(name: str, value: np.ndarray) -> Any:
    """Return a figure as plain numbers; None for an undefined disparity."""
    return None if name in MAY_BE_UNDEFINED and np.isnan(value) else value.tolist()


def _unbatch(metrics: Mapping[str, Any], number: int) -> list[dict[str, Any]]:
    arrays = {name: np.asarray(value) for name, value in metrics.items()}
    return [{name: _known(name, v[j]) for name, v in arrays.items()} for j in range(number)]
