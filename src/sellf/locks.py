"""Locks that are released when the process that holds them ends, however it ends."""

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sellf.errors import InputError

try:
    import fcntl
except ImportError:  # Windows, where there are no locks.
    fcntl = None

_HELD = (errno.EACCES, errno.EAGAIN, errno.EWOULDBLOCK)
_NONE = (errno.ENOLCK, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL)
"""The error numbers of file systems without locks."""


@contextmanager
def only_one(folder: Path, sentence: str) -> Iterator[None]:
    """Lock a folder for this process; refuse with `sentence` if another process holds the lock.

    The folder itself is locked, without a lock file, except on network file systems, which lock
    files only.
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
    """Return the handle that holds a lock; None if the file system has no locks."""
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
    """Exclusive claims on named items, for processes that share a file.

    The name of an item is a hexadecimal hash, which determines a position in the file. A claim is a
    lock on that byte, also across machines. Claims belong to a process: its threads share them.
    """

    def __init__(self, path: Path) -> None:
        """Open the file, which stays empty."""
        self.handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)

    def claim(self, name: str) -> bool:
        """Claim an item; return False if another process holds it."""
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
        """Release an item."""
        if fcntl is not None:
            try:
                fcntl.lockf(self.handle, fcntl.LOCK_UN, 1, _place(name))
            except OSError as error:
                if error.errno not in _NONE:
                    raise

    def close(self) -> None:
        """Release all items."""
        os.close(self.handle)


def _place(name: str) -> int:
    return int(name[:15], 16)
