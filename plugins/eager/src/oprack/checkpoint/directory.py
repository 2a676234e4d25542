"""Directories that are written whole or not at all, and that one process at a time writes to."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from oprack.io.atomic import sync_directory


@contextlib.contextmanager
def atomic_directory(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Create a directory that becomes `path`, with all its data on disk, at the end of the `with` block.

    Until then it is named `<path>.tmp`. It is removed when the block raises; if the process dies, it remains, and the
    next call replaces it.

    Raises:
        OSError: When `path` exists.
    """
    final = Path(path)
    temporary = final.with_name(f"{final.name}.tmp")
    shutil.rmtree(temporary, ignore_errors=True)
    temporary.mkdir(parents=True)
    try:
        yield temporary
        for file in temporary.iterdir():
            with open(file, "rb+") as opened:
                os.fsync(opened.fileno())
        sync_directory(temporary)
        os.rename(temporary, final)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise
    sync_directory(final.parent)


@contextlib.contextmanager
def locked(directory: Path) -> Iterator[None]:
    """Hold the lock of a directory, which is released at the latest when the process ends; no-op without flock.

    Raises:
        BlockingIOError: Another process or thread holds it.
    """
    try:
        import fcntl
    except ImportError:
        # Windows, where atomic_directory alone keeps processes from interfering.
        yield
        return
    fd = os.open(directory, os.O_RDONLY)
    try:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if isinstance(error, BlockingIOError):
                raise
            # The file system has no locks, so saving continues without one.
        yield
    finally:
        os.close(fd)
