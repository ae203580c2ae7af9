"""Where inputs are tried: good files, the same made worse, and canaries around them."""

import json
import random
import shutil
import tempfile
from pathlib import Path

from sellf.logs import encodings
from tests.hostile.kinds import Kind
from tests.hostile.watching import OPENED, Canaries, forget_peak, peak, snapshot


class SilentChangeError(AssertionError):
    """What was damaged is read, and says something else."""


class StrangeError(AssertionError):
    """Something was opened, made or changed that was not named."""


class Place:
    """A folder for one kind of file."""

    def __init__(self, folder: Path, kind: Kind) -> None:
        self.kind = kind
        self.inner = folder.resolve() / "in"
        shutil.rmtree(folder, ignore_errors=True)
        self.good, self.scratch = self.inner / "good", self.inner / "scratch"
        self.good.mkdir(parents=True)
        # Where temporary files go, of which none may be left.
        self.temporary = self.inner / "temporary"
        self.temporary.mkdir()
        tempfile.tempdir = str(self.temporary)
        self.part = kind.good(self.good).relative_to(self.good)
        self.usual = json.dumps(kind.use(self.good), default=repr)
        self._anew()
        kind.use(self.scratch)  # whatever is imported or compiled is so from now on
        self._tidy()
        self.canaries = Canaries(self.inner / "outside", self.inner.parent / "outside")
        forget_peak()
        self.base = peak()

    def try_one(self, chance: random.Random) -> None:
        """Read an input; InputError if it is refused, anything else if something went wrong."""
        purpose = self.kind.worse(chance, self.scratch / self.part)
        self.canaries.touched()  # making it worse may do so
        with OPENED.watch(self.inner):
            after = self.kind.use(self.scratch)
        if purpose or after is None:
            return
        if json.dumps(after, default=repr) != self.usual:
            raise SilentChangeError("what was damaged is read, and says something else")

    def keep(self, folder: Path) -> None:
        """Copy the input, as it was read, to another folder."""
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(self.scratch, folder)

    def put_back(self) -> None:
        """Undo the last change; an error if anything else is not as it was."""
        opened, touched = OPENED.strange, self.canaries.touched()
        encodings._remove()  # copies in UTF-8, which stay until the process ends
        other = [*map(str, self.temporary.iterdir()), *self._restored()]
        if opened or touched or other:
            raise StrangeError(f"opened {opened[:3]}, touched {touched[:3]}, changed {other[:3]}")

    def _restored(self) -> list[str]:
        """Make the folder what it was; return what has changed that should not have."""
        after = snapshot(self.scratch)
        both = self.before.keys() | after.keys()
        differ = [path for path in both if self.before.get(path) != after.get(path)]
        if not differ:
            return []
        part = str(self.scratch / self.part)
        names = (*self.kind.makes, *self.kind.rewrites)
        allowed = tuple(str(self.scratch / name) for name in names)
        if self.kind.replaces:
            allowed, part = (*allowed, part, str(self.scratch / "case.json")), "nothing else"
        # One file was made worse; whoever reads it must leave the others alone.
        changed = [path for path in differ if path.startswith(part)]
        other = [path for path in differ if not path.startswith((part, *allowed))]
        other += [path for path in sorted(changed) if not path.startswith(allowed)][1:]
        if other or len(changed) > 1:
            self._anew()
            return other
        for path in changed:
            shutil.copy2(self.good / Path(path).relative_to(self.scratch), path)
        self._tidy()
        if changed:
            self.before = snapshot(self.scratch)
        return []

    def _anew(self) -> None:
        shutil.rmtree(self.scratch, ignore_errors=True)
        shutil.copytree(self.good, self.scratch)
        self._tidy()
        self.before = snapshot(self.scratch)

    def _tidy(self) -> None:
        """Remove what reading has made."""
        for name in self.kind.makes:
            path = self.scratch / name
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink(missing_ok=True)
