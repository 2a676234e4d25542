"""Atomic writes: files that appear either complete or not at all."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import shutil
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import IO, Self

_BINARY = getattr(os, "O_BINARY", 0)  # Windows
_IN_MEMORY = 64 << 20  # bytes for a pipe or a device that wait in memory, and not on disk


class AtomicSave:
    """Writes temporary files next to their final paths and renames them at the end of the `with` block.

    When the block raises, nothing is renamed, and older files remain unchanged. The renames happen one by one once all
    data is on disk, so only a crash between two renames can leave a mix of old and new files. A file that is replaced
    keeps its mode and, where that is allowed, its owner; of a symbolic link the target is replaced. A pipe or a device,
    such as /dev/null, gets the data as the block of `open` ends.

        with AtomicSave() as save, save.open(path) as file: file.write(data)
    """

    def __init__(self) -> None:
        self._written: list[tuple[Path, Path]] = []

    def __enter__(self) -> Self:
        return self

    @contextlib.contextmanager
    def open(self, path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
        """Open a binary file that will become `path`; missing directories are created.

        Raises:
            IsADirectoryError: The path names a directory.
        """
        final, old = _target(path)
        if old is not None and not stat.S_ISREG(old.st_mode):
            # A device answers where it is at random, and a pipe not at all; so what is written is put together here.
            with tempfile.SpooledTemporaryFile(_IN_MEMORY) as file:
                yield file
                file.seek(0)
                with open(final, "wb") as device:
                    shutil.copyfileobj(file, device)
            return
        final.parent.mkdir(parents=True, exist_ok=True)
        # In the same directory, since a rename is atomic only within a file system.
        temporary = final.with_name(f".oprack-{secrets.token_hex(8)}.tmp")
        # Nobody may read on the way what only the owner may read in the end.
        mode = 0o666 if old is None else 0o600
        with open(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _BINARY, mode), "wb") as file:
            self._written.append((temporary, final))
            if old is not None:
                _make_alike(temporary, old)
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
                    sync_directory(directory)
        finally:
            for temporary, _ in self._written:
                temporary.unlink(missing_ok=True)


def _target(path: str | os.PathLike[str]) -> tuple[Path, os.stat_result | None]:
    """The file that a save to `path` writes, behind symbolic links, and its status if it exists."""
    text = os.fsdecode(path)
    refuse_directory(text, "the name of a file to write")
    try:
        old = os.stat(text)
    except FileNotFoundError:
        old = None
    return Path(os.path.realpath(text)), old


def refuse_directory(path: str | os.PathLike[str], expected: str) -> None:
    """Refuse a path that can name no file, for what writes one and what reads it alike.

    Raises:
        IsADirectoryError: There is a directory, or the path is empty or ends as only a directory's does.
    """
    text = os.fsdecode(path)
    if not text or text.endswith((os.sep, os.altsep or os.sep)) or os.path.isdir(text):
        raise IsADirectoryError(errno.EISDIR, f"this names a directory; expected {expected}", text)


def _make_alike(path: Path, old: os.stat_result) -> None:
    """Give a file the owner and the mode of the one that it replaces."""
    if hasattr(os, "chown"):
        with contextlib.suppress(OSError):  # only root may give files away
            os.chown(path, old.st_uid, old.st_gid)
    os.chmod(path, stat.S_IMODE(old.st_mode))


def write_atomic(path: str | os.PathLike[str], data: bytes) -> None:
    """Write a whole file; if this fails, an existing file of that name remains unchanged."""
    with AtomicSave() as save, save.open(path) as file:
        file.write(data)


def sync_directory(directory: Path) -> None:
    """Make renames in a directory durable. Windows neither allows nor needs this."""
    if os.name != "nt":
        fd = os.open(directory, os.O_RDONLY)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)
