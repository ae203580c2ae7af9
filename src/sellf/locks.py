"""Locks that end with the process that holds them, however it ends: nothing is left behind."""

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sellf.errors import InputError

try:
    import fcntl
except ImportError:  # Windows: nobody is kept out there.
    fcntl = None

_HELD = (errno.EACCES, errno.EAGAIN, errno.EWOULDBLOCK)
_NONE = (errno.ENOLCK, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL)
"""How a file system says that it has no locks."""


@contextmanager
def only_one(folder: Path, sentence: str) -> Iterator[None]:
    """Keep other processes out of a folder; refuse with a sentence if one is in already.

    The folder itself is locked, so that no file has to be. Network file systems lock files only.
    """
    handle = _lock(folder, os.O_RDONLY, sentence)
    if handle is None:
        handle = _lock(folder / ".lock", os.O_RDWR | os.O_CREAT, sentence)
    try:
        yield
    finally:
        if handle is not None:
            os.close(handle)


def _lock(path: Path, flags: int, sentence: str) -> int | None:
    """Return the handle that holds a lock; nothing if the file system has none."""
    if fcntl is None:
        return None
    handle = os.open(path, flags, 0o666)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(handle)
        if error.errno in _HELD:
            raise InputError(sentence) from None
        if error.errno in (*_NONE, errno.EBADF):
            return None
        raise
    return handle


class Claims:
    """Who is at which of many things, for processes that share a file.

    A thing's name is a hash in hexadecimal. It is a place in the file, and a claim a lock on that
    byte, for processes on other machines too. Claims are a process's: two threads share theirs.
    """

    def __init__(self, path: Path) -> None:
        """Open the file, which stays empty."""
        self.handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)

    def claim(self, name: str) -> bool:
        """Return whether a thing is this process's from now on, and no other's."""
        if fcntl is None:
            return True
        try:
            fcntl.lockf(self.handle, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, _place(name))
        except OSError as error:
            if error.errno in _HELD:
                return False
            if error.errno not in _NONE:
                raise
        return True

    def release(self, name: str) -> None:
        """Let others have a thing."""
        if fcntl is not None:
            try:
                fcntl.lockf(self.handle, fcntl.LOCK_UN, 1, _place(name))
            except OSError as error:
                if error.errno not in _NONE:
                    raise

    def close(self) -> None:
        """Let others have everything."""
        os.close(self.handle)


def _place(name: str) -> int:
    return int(name[:15], 16)
