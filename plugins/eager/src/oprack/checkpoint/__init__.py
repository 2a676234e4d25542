"""Checkpoints, from which training can resume: parameters, optimizer state, step, random state and schedules.

A directory holds the last few checkpoints as `ckpt-<n>`, and the name of the newest in `latest`. Each has `values.bin`,
with the tensors in the format of parameter files, and `manifest.json`, with their offsets and checksums and everything
else. A checkpoint is written under a temporary name and then renamed, so a process that is killed at any moment leaves
the previous one intact. Nothing is pickled. A directory is locked for one saving process at a time; any may load.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, cast

from oprack.checkpoint.directory import atomic_directory, locked
from oprack.checkpoint.manifest import check_plain, check_program, seal, unseal
from oprack.desc import VarDesc
from oprack.errors import (
    CheckpointBusyError,
    CheckpointMismatchError,
    CorruptCheckpointError,
    CorruptParameterError,
    InvalidArgumentError,
    InvalidLoDError,
    NotFoundError,
)
from oprack.io.atomic import write_atomic
from oprack.io.parameters import Value, check_fits, collect_values, open_view, persistable_vars, set_values
from oprack.io.streams import read_variable, write_variable
from oprack.python.interruption import let_interruptions_pass
from oprack.tensor import Scope, SelectedRows

if TYPE_CHECKING:
    from oprack.program import Program
    from oprack.runtime import NaiveExecutor

_VALUES, MANIFEST, _LATEST = "values.bin", "manifest.json", "latest"
_NAME = re.compile(r"ckpt-(\d{1,18})")
last_saved = [""]  # what this process saved last, which is named when one of several ranks fails


@dataclass(frozen=True)
class Checkpoint:
    """The contents of a checkpoint besides tensors.

    Attributes:
        step: Number of the training step.
        extra: The argument `extra` of save_checkpoint.
        path: Its directory.
    """

    step: int
    extra: dict[str, Any] = field(default_factory=dict)
    path: Path = Path()


# Saving -------------------------------------------------------------------------------------------------------------
def save_checkpoint(
    path: str | os.PathLike[str],
    program: Program,
    scope: Scope,
    *,
    step: int = 0,
    executor: NaiveExecutor | None = None,
    extra: Mapping[str, Any] | None = None,
    keep: int = 3,
) -> Path:
    """Save every persistable variable of a program as a new checkpoint.

    Args:
        path: The directory of checkpoints.
        program: The program.
        scope: The scope that holds its variables.
        step: Number of the training step.
        executor: The executor whose random state is saved; None saves none.
        extra: Anything that JSON can represent.
        keep: How many checkpoints to keep, this one included.

    Returns:
        The directory of the new checkpoint.

    Raises:
        MissingParameterError: Variables have no value.
        InvalidArgumentError: A value does not fit its VarDesc, or JSON can't represent `extra`.
        CheckpointBusyError: Another process is saving into the directory; older checkpoints remain unchanged.
    """
    if keep < 1:
        raise InvalidArgumentError(f"save_checkpoint: keep is {keep}; expected 1 or more")
    body = {
        "step": int(step),
        "extra": dict(extra or {}),
        "random": None if executor is None else executor.random.state(),
        "schedules": {name: schedule.state_dict() for name, schedule in program.schedules.items()},
    }
    for key, value in body.items():
        check_plain(value, key)
    values = collect_values(scope, persistable_vars(program))
    root = Path(path)
    root.mkdir(parents=True, exist_ok=True)
    try:
        with locked(root):
            return _save(root, body, values, keep)
    except (BlockingIOError, FileNotFoundError, FileExistsError) as error:  # the latter two where there are no locks
        raise CheckpointBusyError(
            f"save_checkpoint: another process or thread saves into {os.fspath(root)!r} ({error}); expected one at a "
            "time, so give each a directory of its own, or let one process save for all"
        ) from error


def _save(root: Path, body: dict[str, Any], values: Mapping[str, Value], keep: int) -> Path:
    with new_checkpoint(root, keep) as directory:
        body["variables"] = _write_values(directory / _VALUES, values)
        (directory / MANIFEST).write_bytes(seal(body))
    return root / directory.stem


@contextlib.contextmanager
def new_checkpoint(root: Path, keep: int) -> Iterator[Path]:
    """A directory that becomes the newest checkpoint at the end of the with block; the caller holds the lock of `root`.

    Args:
        root: The directory of checkpoints.
        keep: How many to keep, the new one included.

    Yields:
        The directory under its temporary name, that of the checkpoint and ".tmp".
    """
    _sweep(root)  # the lock is held, so whatever has a temporary name was left behind by a process that died
    existing = _numbers(root)
    name = f"ckpt-{max(existing, default=0) + 1}"
    with atomic_directory(root / name) as directory:
        yield directory
    # Only once the directory has its final name: a reader in between finds the previous checkpoint.
    write_atomic(root / _LATEST, f"{name}\n".encode())
    # Old ones are removed last, so that there is a complete checkpoint at every moment.
    for number in sorted(existing)[: max(len(existing) + 1 - keep, 0)]:
        _remove(root / f"ckpt-{number}")
    last_saved[0] = os.fspath(root / name)


class _Hashing:
    """A file that computes checksum and number of the bytes written since `restart`."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self.offset = self.start = 0
        self.restart()

    def restart(self) -> None:
        self._hash = hashlib.sha256()
        self.start = self.offset

    def write(self, data: Any) -> int:
        size = memoryview(data).nbytes
        self._file.write(data)
        self._hash.update(data)
        self.offset += size
        return size

    def entry(self) -> dict[str, Any]:
        return {"offset": self.start, "size": self.offset - self.start, "sha256": self._hash.hexdigest()}


def _write_values(path: Path, values: Mapping[str, Value]) -> list[dict[str, Any]]:
    entries = []
    with open(path, "xb") as opened:
        file = _Hashing(opened)
        for name, value in values.items():
            file.restart()
            write_variable(cast("IO[bytes]", file), value, name)
            kind = "rows" if isinstance(value, SelectedRows) else "dense"
            entries.append(
                {"name": name, "kind": kind, "dtype": value.dtype, "shape": list(value.shape), **file.entry()}
            )
    return entries


def _numbers(root: Path) -> list[int]:
    """Numbers of the checkpoints in a directory."""
    matches = [_NAME.fullmatch(entry.name) for entry in root.iterdir()] if root.is_dir() else []
    return [int(match[1]) for match in matches if match]


def _sweep(root: Path) -> None:
    """Remove temporary files and directories of processes that died while saving."""
    for entry in root.iterdir():
        if re.fullmatch(r"ckpt-\d+\.tmp", entry.name):
            shutil.rmtree(entry, ignore_errors=True)
        elif re.fullmatch(r"\.oprack-[0-9a-f]+\.tmp", entry.name):
            entry.unlink(missing_ok=True)


def _remove(directory: Path) -> None:
    """Remove a checkpoint, renaming it first so that readers never see a partially removed one."""
    doomed = directory.with_name(f"{directory.name}.tmp")
    shutil.rmtree(doomed, ignore_errors=True)
    os.rename(directory, doomed)
    shutil.rmtree(doomed, ignore_errors=True)


# Loading ------------------------------------------------------------------------------------------------------------
def latest_checkpoint(path: str | os.PathLike[str]) -> Path | None:
    """Find the newest checkpoint in a directory.

    Args:
        path: The directory of checkpoints.

    Returns:
        The directory of the newest checkpoint; None when there is none.

    Raises:
        CorruptCheckpointError: The contents of the file `latest` are not the name of a checkpoint.
    """
    root = Path(path)
    pointer = root / _LATEST
    if pointer.is_file():
        with open(pointer, "rb") as file:
            # Bounded, since the file is untrusted and may have any size.
            name = file.read(64).decode("ascii", "replace").strip()
        if not _NAME.fullmatch(name):
            raise CorruptCheckpointError(
                f"{os.fspath(pointer)!r} names {name!r}; expected a name such as 'ckpt-3'; delete the file to take the "
                "checkpoint with the highest number"
            )
        if (root / name).is_dir():
            return root / name
    numbers = _numbers(root)
    return root / f"ckpt-{max(numbers)}" if numbers else None


def load_checkpoint(
    path: str | os.PathLike[str], program: Program, scope: Scope, executor: NaiveExecutor | None = None
) -> Checkpoint:
    """Set every persistable variable of a program from the newest checkpoint in a directory.

    The states of the program's schedules and, when one was saved, the random state of the executor are set as well.
    Everything is read and checked before anything is set.

    Args:
        path: The directory of checkpoints, or that of one checkpoint.
        program: The program.
        scope: Where its variables are set.
        executor: The executor whose random state is set.

    Returns:
        The step, what was saved as `extra`, and the directory.

    Raises:
        NotFoundError: When there is no checkpoint.
        CorruptCheckpointError: When it is truncated or altered.
        CheckpointMismatchError: The message lists how the program differs.
    """
    root = Path(path)
    directory = root if (root / MANIFEST).is_file() else latest_checkpoint(root)
    if directory is None:
        raise NotFoundError(
            f"{os.fspath(root)!r} holds no checkpoint; expected a directory that save_checkpoint wrote, with ckpt-<n> "
            "inside"
        )
    directory, body, values = _read_newest(root, directory, program)
    # Schedules belong to packs and may reject a state; if one does, all of them are restored.
    before = {name: schedule.state_dict() for name, schedule in program.schedules.items()}
    try:
        for name, schedule in program.schedules.items():
            schedule.set_state_dict(body["schedules"][name])
        if executor is not None and body["random"] is not None:
            executor.random.load_state(body["random"])
    except Exception as error:
        for name, state in before.items():
            program.schedules[name].set_state_dict(state)
        let_interruptions_pass()
        raise CheckpointMismatchError(
            f"{os.fspath(directory)!r}: a schedule or the random state can't be set: {error}; nothing was changed"
        ) from error
    set_values(scope, values)
    return Checkpoint(body["step"], body["extra"], directory)


def _read_newest(root: Path, directory: Path, program: Program) -> tuple[Path, dict[str, Any], dict[str, Value]]:
    """Directory, manifest and values of a checkpoint; of a newer one if a process that saves removed it meanwhile."""
    descs = persistable_vars(program)
    while True:
        try:
            body = unseal(directory / MANIFEST)
            check_program(body, descs, program, directory)
            return (
                directory,
                body,
                _read_values(directory / _VALUES, body["variables"], {var.name: var for var in descs}),
            )
        except CorruptCheckpointError:
            newer = None if directory == root else latest_checkpoint(root)
            if newer is None or newer == directory:
                raise
            directory = newer


def _read_values(path: Path, entries: list[dict[str, Any]], descs: Mapping[str, VarDesc]) -> dict[str, Value]:
    source = repr(os.fspath(path))
    try:
        view = open_view(path)
    except OSError as error:
        let_interruptions_pass()
        raise CorruptCheckpointError(f"{source} can't be read: {error}; take another checkpoint") from None
    size = sum(entry["size"] for entry in entries)
    if len(view) != size:
        raise CorruptCheckpointError(
            f"{source} has {len(view)} bytes; its manifest says {size}, so it was truncated or altered; take another "
            "checkpoint beside it"
        )
    values: dict[str, Value] = {}
    for entry in entries:
        name, start = entry["name"], entry["offset"]
        piece = view[start : start + entry["size"]]
        if hashlib.sha256(piece).hexdigest() != entry["sha256"]:
            raise CorruptCheckpointError(
                f"{source}: the checksum of variable {name!r} (bytes {start} to {start + entry['size']}) differs, so "
                "the file was altered; take another checkpoint beside it"
            )
        try:
            values[name], end = read_variable(piece, 0, descs[name].type, name=name, source=source)
            check_fits(values[name], descs[name], source)
        except (CorruptParameterError, InvalidLoDError) as error:
            raise CorruptCheckpointError(f"{error}; take another checkpoint beside it") from error
        if end != len(piece):
            raise CorruptCheckpointError(
                f"{source}: variable {name!r} takes {end} bytes, but its manifest says {len(piece)}; take another "
                "checkpoint beside it"
            )
    return values
