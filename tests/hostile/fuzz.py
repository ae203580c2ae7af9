"""Thousands of damaged and forged files, read as a user would: `make fuzz`.

    python -m tests.hostile.fuzz --inputs 100000
    python -m tests.hostile.fuzz --kind agent --only 1234

Whatever a file says, it is read, or refused in a sentence; nothing outside of its folder is opened;
what was damaged at random and is read all the same says what it said before.
"""

import argparse
import io
import json
import random
import resource
import shutil
import sys
import sysconfig
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sellf.cli import main as sellf_main
from sellf.errors import InputError
from tests.hostile import mutators

MEMORY = 1.5e9
"""Bytes that reading bad files may take beyond what reading good ones did."""
ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Kind:
    """A kind of file that we read."""

    good: Callable[[Path], Path]
    """Write good files into a folder, and return the part of it that is made worse."""
    use: Callable[[Path], Any]
    """Read the folder; raise InputError if it is refused. What it returns must not change."""


def short_training() -> dict[str, Any]:
    return {"steps": 512, "rollout": 256, "epochs": 1, "progress": False}


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

    from sellf.agent import Agent
    from sellf.algorithms import catalogue, networks
    from sellf.algorithms.config import as_dict

    hooks, config = catalogue.resolve("sellf", {})
    chance = np.random.default_rng(0)
    policy, predictor = (
        chance.normal(size=networks.size(stacks, world.inputs)).astype(np.float32)
        for stacks in (hooks.stacks(world.space), (hooks.predictor,))
    )
    agent = Agent(world, "sellf", "opportunity", as_dict(config), 0, policy, predictor)
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

    from sellf import runs, training
    from sellf.algorithms import catalogue

    run = runs.open_run(folder / "run")
    plan = training.Plan(**run.plan)
    sizes = (plan.world.population, plan.world.window, plan.config["rollout"])
    if max(sizes) > 5000 or plan.iterations > 100 or plan.algorithm != "ppo":
        return "another training"
    hooks, config = catalogue.resolve(plan.algorithm, plan.config)
    config = jax.tree.map(lambda leaf: jnp.asarray(leaf, jnp.float32), config)
    task = training.trainer.simulated(plan.world, plan.notion, plan.iterations)
    state = jax.eval_shape(
        lambda key: training.trainer.init(hooks, task, config, key), jax.random.key(plan.seed)
    )
    like = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), state)
    restored, rows = run.restore(like)
    leaves = [runs._raw(leaf).tobytes() for leaf in jax.tree.leaves(restored)]
    return leaves, rows, plan.config, plan.seed, plan.steps


def good_store(folder: Path) -> Path:
    from sellf.studies.run import run
    from sellf.studies.store import open_store
    from tests.studies.tiny import TEXT, FakeEngine, study

    (folder / "tiny.toml").write_text(TEXT)
    run(study(), open_store(folder / "store"), FakeEngine())
    return folder / "store"


def use_store(folder: Path) -> Any:
    store = ["--store", str(folder / "store")]
    study = str(folder / "tiny.toml")
    told = [command("study", "status", study, *store, "--check")]
    told.append(command("study", "merge", store[1], "--store", str(folder / "new")))
    told.append(command("study", "table", study, *store, "--out", str(folder / "out")))
    return None if any("damaged" in text or "left out" in text for text in told) else "whole"


def good_study(folder: Path) -> Path:
    from tests.studies.tiny import TEXT

    extra = "\n[world_settings.lending]\npopulation = 300\ncost = 0.5\n"
    (folder / "study").mkdir()
    (folder / "study" / "tiny.toml").write_text(TEXT + extra)
    return folder / "study"


def use_study(folder: Path) -> Any:
    from sellf.studies import spec

    study = spec.load(folder / "study" / "tiny.toml")
    if len(study.seeds) < 100 and sum(len(entry.grid) for entry in study.entries) < 100:
        command(
            "study", "status", str(folder / "study" / "tiny.toml"), "--store", str(folder / "s")
        )
    return "whatever it says"


def good_audit(folder: Path) -> Path:
    (folder / "audit").mkdir()
    (folder / "audit" / "audit.json").write_text(command("audit", "--example", "--json"))
    return folder / "audit"


def use_audit(folder: Path) -> Any:
    from sellf.audit.saved import read

    found = read(folder / "audit" / "audit.json")
    command("report", str(folder / "audit" / "audit.json"), "-o", str(folder / "page.html"))
    str(found)
    return "whatever it says"


KINDS = {
    "agent": Kind(good_agent, use_agent),
    "world": Kind(good_world, use_agent),
    "run": Kind(good_run, use_run),
    "store": Kind(good_store, use_store),
    "study": Kind(good_study, use_study),
    "audit": Kind(good_audit, use_audit),
}
WORLD = ("world.safetensors", "config.json")
"""What is made worse of an agent, where it is its world that is tried."""


def command(*arguments: str) -> str:
    """Type a command; return what it printed."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        try:
            code = sellf_main(arguments)
        except SystemExit as end:
            code = end.code
    if code == 2:
        said = err.getvalue()
        if not said.startswith("sellf: ") or "Traceback" in said:
            raise AssertionError(f"exit code 2 without a sentence: {said[:200]!r}")
        raise InputError(said)
    if code not in (0, 1):
        raise AssertionError(f"exit code {code}")
    return out.getvalue() + err.getvalue()


class Opened:
    """The files that are opened outside of where they may be."""

    def __init__(self) -> None:
        self.within: Path | None = None
        self.strange: list[str] = []
        known = [sys.prefix, sys.base_prefix, sysconfig.get_path("stdlib"), ROOT, "/proc", "/sys"]
        self.known = tuple(str(Path(path).resolve()) for path in known)
        sys.addaudithook(self._hook)

    def _hook(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event != "open" or self.within is None or not isinstance(arguments[0], str | bytes):
            return
        path = arguments[0].decode() if isinstance(arguments[0], bytes) else arguments[0]
        writes = isinstance(arguments[2], int) and arguments[2] & 3 != 0
        full = str(Path(path).absolute())
        if full in ("/dev/null", "/dev/urandom") or full.startswith(str(self.within)):
            return
        if writes or not full.startswith(self.known):
            self.strange.append(full)

    @contextmanager
    def watch(self, folder: Path) -> Iterator[None]:
        """Note what is opened outside of a folder."""
        self.within, self.strange = folder, []
        try:
            yield
        finally:
            self.within = None
        if self.strange:
            raise AssertionError(f"opened {self.strange[:3]}")


OPENED = Opened()


def worse(chance: random.Random, folder: Path, names: tuple[str, ...] = ()) -> bool:
    """Make one file of a folder worse; return whether that was done on purpose."""
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


def fuzz(kind: str, seed: int, numbers: range, folder: Path) -> None:
    """Try some inputs of a kind; the first that goes wrong ends it, with what to type."""
    chosen = KINDS[kind]
    good = folder / "good"
    good.mkdir(parents=True)
    changing = chosen.good(good).relative_to(good)
    before = json.dumps(chosen.use(good), default=str)
    scratch = folder / "scratch"
    for number in numbers:
        chance = random.Random(f"{kind} {seed} {number}")
        shutil.rmtree(scratch, ignore_errors=True)
        shutil.copytree(good, scratch)
        purpose = worse(chance, scratch / changing, WORLD if kind == "world" else ())
        try:
            with OPENED.watch(folder):
                after = chosen.use(scratch)
            if not purpose and after is not None and json.dumps(after, default=str) != before:
                raise AssertionError("what was damaged is read, and says something else")
        except InputError:
            continue
        except BaseException:
            print(
                f"\nsee it again: python -m tests.hostile.fuzz --kind {kind} --seed {seed} "
                f"--only {number}",
                file=sys.stderr,
            )
            raise


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--inputs", type=int, default=6000, help="how many, over all kinds")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kind", choices=list(KINDS))
    parser.add_argument("--only", type=int, help="this input alone")
    given = parser.parse_args()
    kinds = [given.kind] if given.kind else list(KINDS)
    each = -(-given.inputs // len(kinds))
    numbers = range(each) if given.only is None else range(given.only, given.only + 1)
    with tempfile.TemporaryDirectory() as folder:
        for kind in kinds:
            begun, used = time.monotonic(), _memory()
            fuzz(kind, given.seed, numbers, Path(folder) / kind)
            seconds, more = time.monotonic() - begun, _memory() - used
            print(
                f"{kind}: {len(numbers):,} inputs, {seconds:.0f} s, {more / 1e6:.0f} MB", flush=True
            )
            if more > MEMORY:
                raise SystemExit(f"{kind} took too much memory")


def _memory() -> float:
    """Return the most memory that this process has had, in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


if __name__ == "__main__":
    main()
