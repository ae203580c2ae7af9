"""Thousands of damaged and forged files of every kind, read as a user would: `make fuzz`.

    python -m tests.hostile.fuzz --inputs 100000
    python -m tests.hostile.fuzz --kind agent --only 1234

Whatever a file says, it is read, or refused in a sentence; nothing outside of its folder is opened,
made or changed; what was damaged at random and is read all the same says what it said before; and
memory stays bounded. Stopped, the same command goes on where it was; what goes wrong is kept in the
folder, with what to type to see it again.
"""

import argparse
import json
import os
import random
import sys
import tempfile
import time
import traceback
from dataclasses import asdict, dataclass, field
from pathlib import Path

from sellf.errors import InputError
from tests.hostile import kinds, log_kinds, table_kinds
from tests.hostile.place import Place, SilentChangeError, StrangeError
from tests.hostile.watching import peak

MEMORY = 1.5e9
"""Bytes that reading bad files may take beyond what reading good ones did."""
EVERY = 10.0
"""Seconds between two lines that tell how far it is."""
KINDS = kinds.KINDS | log_kinds.LOGS | table_kinds.TABLES


@dataclass
class Tally:
    """What became of the inputs of one kind."""

    inputs: int = 0
    refused: int = 0
    accepted: int = 0
    tracebacks: int = 0
    changes: int = 0
    """Read without a word, with another result; or with another from a file than from memory."""
    strange: int = 0
    """Something outside was opened, made or changed."""
    memory: float = 0.0
    """Bytes, the most beyond what reading good files took."""
    seconds: float = 0.0
    failures: list[int] = field(default_factory=list)

    @property
    def bad(self) -> bool:
        """Whether something went wrong."""
        return bool(self.failures) or self.memory > MEMORY


def count(tally: Tally, place: Place, chance: random.Random, keep: Path) -> str | None:
    """Try an input and note what became of it; return what went wrong, if something did."""
    wrong = None
    try:
        place.try_one(chance)
        tally.accepted += 1
    except InputError:
        tally.refused += 1
    except (SilentChangeError, log_kinds.DiffersError):
        tally.changes += 1
        wrong = traceback.format_exc()
    except Exception:
        tally.tracebacks += 1
        wrong = traceback.format_exc()
    if wrong is not None:
        place.keep(keep)
    try:
        place.put_back()
    except StrangeError:
        tally.strange += 1
        wrong = traceback.format_exc()
    tally.inputs += 1
    return wrong


class Session:
    """Inputs of all kinds, and how far they are."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.folder, self.seed = folder, seed
        self.path = folder / f"tally-{seed}.json"
        self.tallies = {kind: Tally() for kind in KINDS}
        self.told = time.monotonic()
        if self.path.exists():
            kept = json.loads(self.path.read_text())
            self.tallies |= {kind: Tally(**one) for kind, one in kept.items() if kind in KINDS}

    def fuzz(self, kind: str, numbers: range) -> Tally:
        """Try some inputs of a kind."""
        tally = self.tallies[kind]
        if not numbers:
            return tally
        place = Place(self.folder / "work" / kind.partition(" ")[0], KINDS[kind])
        for number in numbers:
            begun = time.monotonic()
            keep = self.folder / f"failing-{kind.replace(' ', '-')}-{self.seed}-{number}"
            wrong = count(tally, place, random.Random(f"{kind} {self.seed} {number}"), keep)
            tally.seconds += time.monotonic() - begun
            if wrong is not None:
                self._note(kind, number, wrong, keep)
            if time.monotonic() - self.told > EVERY or number == numbers[-1]:
                tally.memory = max(tally.memory, peak() - place.base)
                self._tell(kind, numbers[-1] + 1)
        return tally

    def _note(self, kind: str, number: int, wrong: str, keep: Path) -> None:
        self.tallies[kind].failures.append(number)
        again = f"python -m tests.hostile.fuzz --kind '{kind}' --seed {self.seed} --only {number}"
        keep.mkdir(exist_ok=True)
        (keep / "what.txt").write_text(f"{again}\n\n{wrong}")
        print(f"{wrong}\nkept in {keep}; see it again: {again}\n", file=sys.stderr, flush=True)

    def _tell(self, kind: str, total: int) -> None:
        tally, self.told = self.tallies[kind], time.monotonic()
        rate = tally.inputs / max(tally.seconds, 1e-9)
        print(
            f"{kind}: {tally.inputs:,} of {total:,}, {rate:.0f} a second, {tally.refused:,} "
            f"refused, {len(tally.failures)} went wrong",
            flush=True,
        )
        beside = self.path.with_suffix(".new")
        beside.write_text(json.dumps({name: asdict(one) for name, one in self.tallies.items()}))
        beside.replace(self.path)

    def table(self) -> str:
        """Return what became of all inputs, as a table in Markdown."""
        heads = ("kind", "inputs", "refused", "read", "tracebacks", "silent changes",
                 "outside of the folder", "memory", "inputs/s")  # fmt: skip
        rows = [
            (
                kind,
                *(f"{n:,}" for n in (t.inputs, t.refused, t.accepted, t.tracebacks, t.changes)),
                str(t.strange),
                f"{t.memory / 1e6:.0f} MB",
                f"{t.inputs / max(t.seconds, 1e-9):.0f}",
            )
            for kind, t in self.tallies.items()
            if t.inputs
        ]
        lines = [heads, ("---", *["---:"] * (len(heads) - 1)), *rows]
        return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def shares(inputs: int, only: str | None = None) -> dict[str, int]:
    """Return how many inputs each kind gets."""
    if only is not None:
        return {only: inputs}
    total = sum(kind.share for kind in KINDS.values())
    return {name: -(-inputs * kind.share // total) for name, kind in KINDS.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--inputs", type=int, default=6000, help="how many, over all kinds")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kind", choices=list(KINDS))
    parser.add_argument("--only", type=int, help="this input alone")
    parser.add_argument("--folder", type=Path, help="to work in, and to go on in")
    given = parser.parse_args()
    folder = (given.folder or Path(tempfile.gettempdir()) / "sellf-fuzz").resolve()
    folder.mkdir(parents=True, exist_ok=True)
    os.environ["SELLF_CACHE"] = str(folder / "cache")
    session = Session(folder, given.seed)
    print(f"seed {given.seed}; all is kept in {folder}")
    if given.only is not None:
        session.path = folder / "tally-only.json"
        session.tallies = {kind: Tally() for kind in KINDS}
        session.fuzz(
            given.kind or parser.error("--only needs --kind"), range(given.only, given.only + 1)
        )
    else:
        for kind, number in shares(given.inputs, given.kind).items():
            session.fuzz(kind, range(session.tallies[kind].inputs, number))
    print(session.table())
    if any(tally.bad for tally in session.tallies.values()):
        raise SystemExit("something went wrong: see above, and in the folder")


if __name__ == "__main__":
    main()
