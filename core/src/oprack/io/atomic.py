"""Atomic writes: files and directories that appear either complete or not at all."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import IO, Self


class AtomicSave:
    """Writes temporary files next to their final paths and renames them at the end of the `with` block.

    When the block raises, nothing is renamed, and older files remain unchanged. The renames happen one by one once all
    data is on disk, so only a crash between two renames can leave a mix of old and new files.

        with AtomicSave() as save, save.open(path) as file: file.write(data)
    """

    def __init__(self) -> None:
        self._written: list[tuple[Path, Path]] = []

    def __enter__(self) -> Self:
        return self

    @contextlib.contextmanager
    def open(self, path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
        """Open a binary file that will become `path`; missing directories are created."""
        final = Path(path)
        final.parent.mkdir(parents=True, exist_ok=True)
        # In the same directory, since a rename is atomic only within a file system.
        temporary = final.with_name(f".oprack-{secrets.token_hex(8)}.tmp")
        with open(temporary, "xb") as file:
            self._written.append((temporary, final))
            yield file
            file.flush()
            # Without this, the rename may reach the disk before the data, and a power failure leave an empty file.
            os.fsync(file.fileno())

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        try:
            if kind is None:
                for temporary, final in self._written:
                    os.replace(temporary, final)
                for directory in dict.fromkeys(final.parent for _, final in self._written):
                    _sync_directory(directory)
        finally:
            for temporary, _ in self._written:
                temporary.unlink(missing_ok=True)


def write_atomic(path: str | os.PathLike[str], data: bytes) -> None:
    """Write a whole file; if this fails, an existing file of that name remains unchanged."""
    with AtomicSave() as save, save.open(path) as file:
        file.write(data)


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
        _sync_directory(temporary)
        os.rename(temporary, final)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise
    _sync_directory(final.parent)


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


def _sync_directory(directory: Path) -> None:
    """Make renames in a directory durable. Windows neither allows nor needs this."""
    if os.name != "nt":
        fd = os.open(directory, os.O_RDONLY)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)
