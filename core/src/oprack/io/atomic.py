"""Files and directories that appear complete or not at all."""

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
    """Writes files beside their final names and moves them there at the end of the `with` block.

    When the block raises, nothing is moved: older files of those names stay as they were. The moves are done one by one
    after all data is on the disk, so only a crash between two moves can leave files of different age.

        with AtomicSave() as save, save.open(path) as file: file.write(data)
    """

    def __init__(self) -> None:
        self._written: list[tuple[Path, Path]] = []

    def __enter__(self) -> Self:
        return self

    @contextlib.contextmanager
    def open(self, path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
        """A binary file that will be `path`; its directory is created when there is none."""
        final = Path(path)
        final.parent.mkdir(parents=True, exist_ok=True)
        # In the same directory, since a rename is atomic within a file system alone.
        temporary = final.with_name(f".oprack-{secrets.token_hex(8)}.tmp")
        with open(temporary, "xb") as file:
            self._written.append((temporary, final))
            yield file
            file.flush()
            # A rename may reach the disk before the data does: after a power cut the file would be empty under its
            # final name.
            os.fsync(file.fileno())

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        try:
            if kind is None:
                for temporary, final in self._written:
                    os.replace(temporary, final)
                # Each directory once, whatever the number of its files.
                for directory in dict.fromkeys(final.parent for _, final in self._written):
                    _sync_directory(directory)
        finally:
            for temporary, _ in self._written:
                temporary.unlink(missing_ok=True)


def write_atomic(path: str | os.PathLike[str], data: bytes) -> None:
    """Write a whole file; one of that name stays as it was when this fails."""
    with AtomicSave() as save, save.open(path) as file:
        file.write(data)


@contextlib.contextmanager
def atomic_directory(path: str | os.PathLike[str]) -> Iterator[Path]:
    """A new directory to put files into, which becomes `path` at the end of the `with` block.

    Then all data is on the disk. Until then it is called `<path>.tmp`, which a process that dies leaves behind and the
    next one replaces. When the block raises, it is removed.

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
    """Hold the lock of a directory, which ends with the process at the latest; nothing where the system has no flock.

    Raises:
        BlockingIOError: When someone else holds it.
    """
    try:
        import fcntl
    # Windows, where atomic_directory alone keeps two processes apart.
    except ImportError:
        yield
        return
    fd = os.open(directory, os.O_RDONLY)
    try:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if isinstance(error, BlockingIOError):
                raise
            # a file system without locks, where saving goes on as before
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
