"""The kinds of files that we read: how a good one is made, made worse, and read as a user would."""

import io
import random
import shutil
import tarfile
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sellf.cli import main as sellf_main
from sellf.errors import InputError
from tests.hostile import mutators

Chance = random.Random


@dataclass(frozen=True)
class Kind:
    """A kind of file that we read."""

    good: Callable[[Path], Path]
    """Write good files into a folder, and return the part of it that is made worse."""
    use: Callable[[Path], Any]
    """Read the folder; raise InputError if it is refused. What it returns must not change."""
    worse: Callable[[Chance, Path], bool]
    """Change something in that part; return whether it was done on purpose, by somebody who knows
    the format: then it may be read, and say something else."""
    share: int
    """How many of 100 inputs are of this kind."""
    makes: tuple[str, ...] = ()
    """What reading may add to the folder; all else has to stay as it is."""
    rewrites: tuple[str, ...] = ()
    """What reading may change: metrics after the checkpoint do not count, and are taken out."""
    replaces: bool = False
    """Whether every change replaces what was there, so that nothing needs to be put back."""


def short_training() -> dict[str, Any]:
    return {"steps": 1024, "rollout": 256, "epochs": 2, "progress": False}


def own_world() -> Any:
    import sellf

    return sellf.world_from_frame(
        {"group": ["a", "b"] * 4, "score": [0, 1, 2, 3] * 2},
        group="group",
        categorical=["score"],
        label=lambda x: x["score"] / 4,
        cost=0.3,
        population=50,
        window=50,
        horizon=64,
    )


def untrained(world: Any, folder: Path) -> Path:
    """Save an agent that knows nothing: its files are like any other's, and made at once."""
    import numpy as np

    from sellf.algorithms import networks
    from sellf.training.agent import Agent
    from sellf.training.spec import resolve

    spec = resolve(world, "sellf", "opportunity", seed=0, steps=1, settings={}, world_settings={})
    hooks = spec.algorithm
    chance = np.random.default_rng(0)
    policy, predictor = (
        chance.normal(size=networks.size(stacks, world.inputs)).astype(np.float32)
        for stacks in (hooks.stacks(world.space), (hooks.predictor,))
    )
    agent = Agent(spec, policy, predictor)
    return agent.save(folder / "agent")


def good_agent(folder: Path) -> Path:
    import sellf

    return untrained(sellf.make_world("lending"), folder)


def good_world(folder: Path) -> Path:
    return untrained(own_world(), folder)


def good_run(folder: Path) -> Path:
    import sellf

    sellf.train(own_world(), "ppo", out=folder / "run", **short_training())
    return folder / "run"


def use_agent(folder: Path) -> Any:
    import numpy as np

    import sellf
    from sellf.envs.saving import rules_of, tables_of

    agent = sellf.load(folder / "agent")
    people = np.zeros((1, agent.world.inputs - len(agent.world.groups)))
    agent.probability(people, agent.world.groups[:1])
    tables = {name: table.tobytes() for name, table in tables_of(agent.world).items()}
    return (np.asarray(agent.parameters).tobytes(), rules_of(agent.world), tables, agent.config,
            agent.seed, agent.notion, agent.history, agent.statement)  # fmt: skip


def use_run(folder: Path) -> Any:
    """Open a run and restore its checkpoint, as resuming does before it trains."""
    import jax
    import jax.numpy as jnp

    from sellf.training import loop, run_folder

    run = run_folder.open_run(folder / "run")
    spec, world = run.spec, run.spec.world.make()
    sizes = (world.population, world.window, spec.config.rollout)
    if max(sizes) > 5000 or spec.iterations > 100 or spec.algorithm.name != "ppo":
        return "another training"
    task, config = loop._inputs(spec)
    state = jax.eval_shape(
        lambda key: loop.trainer.init(spec.algorithm, task, config, key), jax.random.key(spec.seed)
    )
    like = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), state)
    restored, rows = run.restore(like)
    leaves = [run_folder._raw(leaf).tobytes() for leaf in jax.tree.leaves(restored)]
    return leaves, rows, spec.config, spec.seed, spec.steps


def good_store(folder: Path) -> Path:
    from sellf.studies.run import run
    from sellf.studies.store import open_store
    from tests.studies.tiny import TEXT, FakeEngine, study

    (folder / "tiny.toml").write_text(TEXT)
    run(study(), open_store(folder / "store"), FakeEngine())
    return folder / "store"


def use_store(folder: Path) -> Any:
    from sellf.cli.study import act

    store, study = folder / "store", str(folder / "tiny.toml")
    told = [
        typed(lambda: act("status", study, **STUDY | {"store": store, "check": True})),
        typed(lambda: act("merge", str(store), **STUDY | {"store": folder / "new"})),
        typed(lambda: act("table", study, **STUDY | {"store": store, "out": folder / "out"})),
    ]
    if any("damaged" in text or "left out" in text for text in told):
        return None
    lines = (folder / "out" / "table.csv").read_text().splitlines()
    return [line for line in lines if not line.startswith("#")]  # those name the folder


def good_archive(folder: Path) -> Path:
    from sellf.studies import archive
    from sellf.studies.store import Store
    from tests.studies.tiny import study

    kept = Store(good_store(folder))
    (folder / "archive").mkdir()
    archive.export(study(), kept, folder / "archive" / "tiny.tar.xz")
    shutil.rmtree(kept.folder)
    return folder / "archive"


def use_archive(folder: Path) -> Any:
    from sellf.cli.study import act

    new, path = folder / "new", str(folder / "archive" / "tiny.tar.xz")
    told = typed(lambda: act("merge", path, **STUDY | {"store": new}))
    if "left out" in told:
        return None
    study, own = str(folder / "tiny.toml"), {"store": new, "out": folder / "out"}
    typed(lambda: act("table", study, **STUDY | own))
    lines = (folder / "out" / "table.csv").read_text().splitlines()
    return [line for line in lines if not line.startswith("#")]


def worse_archive(chance: Chance, folder: Path) -> bool:
    """Damage an archive, or change, rename or repeat an entry of it."""
    (path,) = folder.iterdir()
    content = path.read_bytes()
    if chance.random() < 0.4:
        path.write_bytes(mutators.damage(chance, content))
        return False
    with tarfile.open(fileobj=io.BytesIO(content)) as old:
        entries = [(entry, old.extractfile(entry).read()) for entry in old]  # pyright: ignore
    at = chance.randrange(len(entries))
    entry, inner = entries[at]
    act = chance.random()
    if act < 0.2:
        entry.name = chance.choice(("../../evil", "/evil", "runs/x/config.json", "evil", "runs"))
    elif act < 0.3:
        entry.type, entry.linkname = chance.choice((tarfile.SYMTYPE, tarfile.LNKTYPE)), "/dev/zero"
        inner = b""
    elif act < 0.4:
        entries.insert(chance.randrange(len(entries)), entries[at])
    elif entry.name.endswith(".json"):
        inner = mutators.json_on_purpose(chance, inner)
    else:
        inner = mutators.damage(chance, inner)
    entries[at] = (entry, inner)
    with tarfile.open(path, "w:xz") as new:
        for one, inside in entries:
            one.size = len(inside)
            new.addfile(one, io.BytesIO(inside))
    return True


STUDY: dict[str, Any] = {
    "engine": "local", "address": None, "workers": None, "quick": False, "check": False,
    "out": None,
}  # fmt: skip
"""What `sellf study` takes where nothing is typed."""


def good_study(folder: Path) -> Path:
    from tests.studies.tiny import TEXT

    extra = "\n[world_settings.lending]\npopulation = 300\ncost = 0.5\n"
    (folder / "study").mkdir()
    (folder / "study" / "tiny.toml").write_text(TEXT + extra)
    return folder / "study"


def use_study(folder: Path) -> Any:
    from sellf.cli.study import act
    from sellf.studies import spec

    path = folder / "study" / "tiny.toml"
    study = spec.load(path)
    if len(study.seeds) < 100 and sum(len(entry.grid) for entry in study.entries) < 100:
        typed(lambda: act("status", str(path), **STUDY | {"store": folder / "s"}))
    return "whatever it says"


def good_audit(folder: Path) -> Path:
    (folder / "audit").mkdir()
    (folder / "audit" / "audit.json").write_text(command("audit", "--example", "--json"))
    return folder / "audit"


def use_audit(folder: Path) -> Any:
    from sellf.audit.saved import read
    from sellf.cli.report import write

    path = folder / "audit" / "audit.json"
    found = read(path)
    typed(lambda: write([path], folder / "page.html", quick=False, store=None))
    str(found)
    return "whatever it says"


def worse(chance: Chance, folder: Path, names: tuple[str, ...] = ()) -> bool:
    """Make one file of a folder worse."""
    paths = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    path = chance.choice([path for path in paths if not names or path.name in names])
    content = path.read_bytes()
    act = chance.random()
    if act < 0.03:
        path.unlink()
        return True
    if act < 0.45:
        path.write_bytes(mutators.damage(chance, content))
        return False
    by_name = {
        ".json": mutators.json_on_purpose,
        ".jsonl": mutators.lines_on_purpose,
        ".toml": mutators.toml_on_purpose,
        ".safetensors": mutators.tensors_on_purpose,
    }
    way = by_name.get(path.suffix)
    way = mutators.sums_on_purpose if path.name == "sha256sums" else way
    if way is None or (path.suffix == ".safetensors" and content == b"agent"):
        way = mutators.damage
    path.write_bytes(way(chance, content))
    return True


def worse_world(chance: Chance, folder: Path) -> bool:
    """Make the world of an agent worse."""
    return worse(chance, folder, ("world.safetensors", "config.json"))


def said(code: Any, out: str, err: str) -> str:
    """Return what a command printed; InputError if it refused in a sentence."""
    if any(letter < " " and letter not in "\n\t" for letter in err):
        raise AssertionError(f"a terminal is told to do something: {err[:200]!r}")
    if code == 2:
        if not err.startswith("sellf: ") or "Traceback" in err or "not enough memory" in err:
            raise AssertionError(f"exit code 2 without a sentence: {err[:200]!r}")
        raise InputError(err)
    if code in (130, 143):
        raise KeyboardInterrupt  # of whoever runs this
    if code not in (0, 1):
        raise AssertionError(f"exit code {code}")
    return out + err


def command(*arguments: str) -> str:
    """Type a command; return what it printed."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        try:
            code = sellf_main(arguments)
        except SystemExit as end:
            code = end.code
    return said(code, out.getvalue(), err.getvalue())


def typed(act: Callable[[], Any]) -> str:
    """Do what a command does; return what it printed.

    Errors end in the same place as those of a command that was typed. Only the reading of what was
    typed is left out, which takes longer than most commands.
    """
    from sellf.cli import commands

    usual = commands.run
    commands.run = lambda _: act()
    try:
        return command("as typed")
    finally:
        commands.run = usual


KINDS = {
    "agent": Kind(good_agent, use_agent, worse, 16),
    "world": Kind(good_world, use_agent, worse_world, 16),
    "run": Kind(good_run, use_run, worse, 8, rewrites=("run/metrics.jsonl",)),
    "store": Kind(good_store, use_store, worse, 4, ("new", "out")),
    "archive": Kind(good_archive, use_archive, worse_archive, 4, ("new", "out")),
    "study": Kind(good_study, use_study, worse, 18),
    "audit": Kind(good_audit, use_audit, worse, 16, ("page.html",)),
}
