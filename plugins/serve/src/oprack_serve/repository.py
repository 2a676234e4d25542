"""The models in a folder: which there are, under which names and versions, and when one has changed.

`DIR/<name>` is a model, or has its versions in folders named by numbers, `DIR/<name>/2`. The names that requests bring
are never made into paths: they are looked up among those found here.
"""

from __future__ import annotations

import errno
import os
import re
import stat
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from oprack.errors import InvalidArgumentError
from oprack.io.inference_model import suffixes

from oprack_serve.options.model_options import FILE, ModelOptions, read_options

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,127}")
VERSION = re.compile(r"[1-9][0-9]{0,17}")
MAX_FILES = 100_000
GONE = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP)
"""Errors of a path that leads to nothing, unlike one that leads to what can't be read."""

Key = tuple[str, str]


@dataclass(frozen=True)
class FoundModel:
    """A version of a model on disk. state: of all its files; another one means that the model has changed."""

    name: str
    version: str
    path: Path
    state: tuple[Any, ...]

    @property
    def key(self) -> Key:
        return self.name, self.version

    def options(self) -> ModelOptions:
        """What is set for it. Raises InvalidArgumentError that names file and key."""
        folder = self.path if self.path.is_dir() else self.path.parent
        above = [folder.parent / FILE] if folder.name == self.version and folder.parent.name == self.name else []
        return read_options([*above, folder / FILE])


def single(path: Path, name: str) -> list[FoundModel]:
    """The model at a path, as version 1. Raises InvalidArgumentError for a name that can't be in a URL, and OSError
    for what can't be read.
    """
    path = path.absolute()
    endings = (".pdmodel", *suffixes())
    name = name or next((path.name.removesuffix(e) for e in endings if path.name.endswith(e)), path.name)
    if not NAME.fullmatch(name):
        raise InvalidArgumentError(
            f"{name!r} can't be the name of a model; expected letters, digits, '_', '-' and '.': pass --name NAME"
        )
    folder = path if path.is_dir() else path.parent
    return [FoundModel(name, "1", path, _state(folder))]


def scan(folder: Path, unreadable: Callable[[str, OSError], Iterable[FoundModel]] | None = None) -> list[FoundModel]:
    """Every version of every model below a folder; what leads out of it by a link, or has no fit name, is left out.

    Args:
        folder: Of the models.
        unreadable: What stands in the place of the models of a name, or of all ("") where the folder itself can't be
            read. What can't be read is not what is gone: a disk may be away for a moment, or descriptors used up.

    Returns:
        The models.

    Raises:
        OSError: Something can't be read, and `unreadable` is not given.
    """
    try:
        root = folder.resolve()
        with os.scandir(root) as listed:
            entries = sorted(Path(entry.path) for entry in listed if NAME.fullmatch(entry.name))
    except OSError as error:
        if unreadable is None:
            raise
        return list(unreadable("", error))
    found: list[FoundModel] = []
    for entry in entries:
        try:
            found += _versions(entry, root)
        except OSError as error:
            if unreadable is None:
                raise
            found += unreadable(entry.name, error)
    return found


def _versions(entry: Path, root: Path) -> list[FoundModel]:
    """The model in a folder, or its versions; none where that is no folder below the root, or is gone by now."""
    try:
        if not _is_folder(entry, root):
            return []
        with os.scandir(entry) as listed:
            numbered = sorted(Path(each.path) for each in listed if VERSION.fullmatch(each.name))
        versions = [path for path in numbered if _is_folder(path, root)]
    except OSError as error:
        if error.errno in GONE:
            return []
        raise
    if not versions:
        return [FoundModel(entry.name, "1", entry, _state(entry))]
    shared = _state_of_file(entry / FILE)
    found = [FoundModel(entry.name, path.name, path, (*_state(path), *shared)) for path in versions]
    return [model for model in found if _is_served(entry, model, found)]


def _is_served(entry: Path, model: FoundModel, found: list[FoundModel]) -> bool:
    """Whether the file for all versions has this one served; one that is wrong is reported when they are loaded."""
    try:
        options = read_options([entry / FILE])
    except InvalidArgumentError:
        return True
    return options.serves(model.version, [each.version for each in found])


def _state_of_file(path: Path) -> tuple[Any, ...]:
    """As `_state` has it, of a file that may be there or not."""
    try:
        found = os.stat(path)
    except OSError as error:
        if error.errno not in GONE:
            raise
        return ()
    return ((os.fspath(path), found.st_size, found.st_mtime_ns, found.st_ino),)


def _is_folder(path: Path, root: Path) -> bool:
    try:
        mode = os.stat(path).st_mode
    except OSError as error:
        if error.errno in GONE:
            return False
        raise
    return stat.S_ISDIR(mode) and path.resolve().is_relative_to(root)


def _state(folder: Path) -> tuple[Any, ...]:
    """Names, sizes and times of change of all files of a model. Raises OSError for what is there and can't be read."""

    def failed(error: OSError) -> None:
        if error.errno not in GONE:
            raise error

    rows: list[tuple[str, int, int, int]] = []
    for directory, _, files in os.walk(folder, onerror=failed):
        for file in files:
            try:
                found = os.stat(os.path.join(directory, file))
            except OSError as error:
                failed(error)
                continue
            rows.append((os.path.join(directory, file), found.st_size, found.st_mtime_ns, found.st_ino))
            if len(rows) > MAX_FILES:
                return tuple(rows)
    return tuple(sorted(rows))
