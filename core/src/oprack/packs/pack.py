"""Pack: a pack as it was found, what it brings, the public record of it, and the warnings about packs."""

from __future__ import annotations

import os
import stat
import sys
import threading
import time
import warnings
from collections.abc import Iterable
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from oprack.errors import PackError
from oprack.packs.installed import manifest as manifests
from oprack.packs.installed.entry_points import FoundPack
from oprack.packs.installed.manifest import Manifest
from oprack.packs.installed.resolve import package_directory
from oprack.python.interruption import let_interruptions_pass
from oprack.python.records import dataclass

if TYPE_CHECKING:
    from oprack.kernel import KernelSpec
    from oprack.op import OpDef, OpVersion
    from oprack.packs.choice import Settlement

STARTED = time.time_ns()
"""When this module was imported, which is before any pack is."""


@dataclass
class Contributions:
    """What one pack brings.

    Attributes:
        targets: (what, key, object or "module:name"), for layers, places, observers and the like.
        files: (path, mtime, size) of each manifest's file, taken before it was read.
    """

    manifests: list[Manifest] = field(default_factory=list)
    definitions: dict[str, type[OpDef]] = field(default_factory=dict)
    facets: list[tuple[str, tuple[Any, ...]]] = field(default_factory=list)
    kernels: list[KernelSpec] = field(default_factory=list)
    versions: list[OpVersion] = field(default_factory=list)
    targets: list[tuple[str, str, Any]] = field(default_factory=list)
    files: list[tuple[str, int, int]] = field(default_factory=list)

    def has_kernels(self) -> bool:
        """Whether this pack brings kernels, of its own ops or of others."""
        return bool(self.kernels) or any(m.kernels or any(o.kernels for o in m.ops.values()) for m in self.manifests)

    def defined(self) -> list[str]:
        """Op types that this pack defines."""
        makers = [op_type for op_type, facets in self.facets if any(is_maker(f) for f in facets)]
        return [*(t for m in self.manifests for t in m.ops), *self.definitions, *makers]

    @property
    def by_string(self) -> bool:
        """Whether everything is named by strings, so that another process can take it from a cache."""
        objects = self.definitions or self.facets or self.kernels or self.versions
        return not objects and all(isinstance(target, str) for _, _, target in self.targets)


def open_own(path: Path) -> int:
    """Open a file for reading that nobody but this user can have written.

    Args:
        path: The file. What is at its end is no link.

    Returns:
        Its descriptor, which the caller closes.

    Raises:
        OSError: It can't be opened, or is a link.
        ValueError: It is no regular file, another user's, or others may write to it.
    """
    # A named pipe would block for ever; and the file that is looked at is the one that is read.
    fd = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOFOLLOW", 0))
    try:
        status = os.fstat(fd)
        if not stat.S_ISREG(status.st_mode):
            raise ValueError("it is no regular file")
        if hasattr(os, "getuid") and (status.st_uid != os.getuid() or status.st_mode & 0o022):
            raise ValueError("it is another user's, or others may write to it")
    except BaseException:
        os.close(fd)
        raise
    return fd


def file_state(path: str | Path) -> tuple[int, int]:
    """What tells a file from a later one at the same path.

    Args:
        path: The file.

    Returns:
        (mtime in ns, size); (0, 0) when there is none.
    """
    try:
        stat = os.stat(path)
    except FileNotFoundError:
        return 0, 0
    except OSError:
        let_interruptions_pass()
        return 0, 0
    return stat.st_mtime_ns, stat.st_size


def is_maker(facet: Any) -> bool:
    """Whether a facet has the slots and attributes of an op, and so defines it."""
    return getattr(facet, "facet", "") == "proto"


@dataclass(frozen=True)
class PackInfo:
    """One installed pack.

    Attributes:
        name: Name of its entry point.
        distribution: Name of the distribution that contains it.
        version: Version of the distribution.
        status: "ok", "blocked" or "broken".
        error: Class and text of the exception that broke it; "" when it works.
        op_types: Ops that it defines, as far as its manifest can be read.
        hooks: Hooks that it implements.
        entry_point: The module that its entry point names.
        conflicts: Op types that another pack defines, too.
        layers: Names that it adds through oprack_layers, such as "layers.fc".
        layer_conflicts: Those of `layers` that another pack adds, too.
        kernels: Whether it brings kernels.
        exception: The exception that broke it; None when it works.
    """

    name: str
    distribution: str
    version: str
    status: str = "ok"
    error: str = ""
    op_types: tuple[str, ...] = ()
    hooks: tuple[str, ...] = ()
    entry_point: str = ""
    conflicts: tuple[str, ...] = ()
    layers: tuple[str, ...] = ()
    layer_conflicts: tuple[str, ...] = ()
    kernels: bool = False
    exception: BaseException | None = field(default=None, compare=False, repr=False)

    def to_dict(self) -> dict[str, Any]:
        """For JSON.

        Returns:
            Names and values of all fields.
        """
        return {
            "name": self.name,
            "distribution": self.distribution,
            "version": self.version,
            "status": self.status,
            "error": self.error,
            "ops": list(self.op_types),
            "hooks": list(self.hooks),
            "entry_point": self.entry_point,
            "conflicts": list(self.conflicts),
            "layers": list(self.layers),
            "layer_conflicts": list(self.layer_conflicts),
            "kernels": self.kernels,
        }


@dataclass
class Pack:
    """A pack of this environment, and what came of loading it.

    Attributes:
        reason: Why it is blocked.
    """

    found: FoundPack
    status: str = "ok"
    exception: BaseException | None = None
    reason: str = ""
    hooks: tuple[str, ...] = ()
    contributions: Contributions = field(default_factory=Contributions)
    _known: tuple[str, ...] | None = None

    @property
    def owner(self) -> str:
        return self.found.distribution

    def known(self) -> tuple[str, ...]:
        """Op types that it defines, sorted; of a blocked or broken pack, as far as its ops.toml can be read."""
        if self.status == "ok":
            return tuple(sorted(set(self.contributions.defined())))
        if self._known is None:
            self._known = known_op_types(self.found)
        return self._known

    def remember_known(self) -> None:
        """Keep the op types that it defines, before it is blocked."""
        self._known = self.known()

    def info(self, ops: Iterable[Settlement], layers: Iterable[Settlement]) -> PackInfo:
        """The public record of it.

        Args:
            ops: How ops were settled that several packs define.
            layers: The same of layers.

        Returns:
            The record.
        """
        e = self.exception
        found = self.found
        return PackInfo(
            found.name,
            found.distribution,
            found.version,
            self.status,
            f"{type(e).__name__}: {e}" if e is not None else self.reason,
            self.known(),
            self.hooks,
            found.value,
            tuple(s.name for s in ops if self in (s.winner, *s.others)),
            tuple(sorted(key for kind, key, _ in self.contributions.targets if kind == "layer")),
            tuple(s.name for s in layers if self in (s.winner, *s.others)),
            self.contributions.has_kernels(),
            e,
        )


def known_op_types(found: FoundPack) -> tuple[str, ...]:
    """Op types of a pack that may not or can't be imported, if its ops.toml can be read."""
    module = found.module
    for package in (module.rpartition(".")[0], module):
        directory = package_directory(package) if package else None
        if directory is not None and (directory / manifests.FILENAME).is_file():
            try:
                return tuple(sorted(manifests.read(directory / manifests.FILENAME).ops))
            except PackError:
                return ()
    return ()


# Warnings -------------------------------------------------------------------------------------------------------------
class PackWarning(UserWarning):
    """The installed packs do not match what was requested, for example by an unknown name in OPRACK_PACKS."""


class BrokenPackWarning(PackWarning):
    """A pack is broken and left out; the others work. `oprack doctor` prints the full reason."""


def warn(text: str, category: type[UserWarning]) -> None:
    """Issue a warning at the innermost line outside oprack, so that it points at the user's code."""
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "oprack":
        level, frame = level + 1, frame.f_back
    warnings.warn(text, category, stacklevel=level)


class WarnOnce:
    """Warns of each cause once; may be called from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._warned: set[tuple[str, ...]] = set()

    def __call__(self, text: str, *key: str, category: type[PackWarning] = BrokenPackWarning) -> None:
        """Warn, unless it was done for this key."""
        with self._lock:
            new = key not in self._warned
            self._warned.add(key)
        if new:
            warn(text, category)
