"""What one pack brings, as its hooks registered it, and the state of the files that it was read from."""

from __future__ import annotations

import os
import time
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from oprack.interruption import let_interruptions_pass
from oprack.packs.manifest import Manifest
from oprack.records import dataclass

if TYPE_CHECKING:
    from oprack.kernel import KernelSpec
    from oprack.op import OpDef, OpVersion

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


def file_state(path: str | Path) -> tuple[int, int]:
    """(mtime in ns, size) of a file; (0, 0) when there is none."""
    try:
        stat = os.stat(path)
    except OSError:
        let_interruptions_pass()
        return 0, 0
    return stat.st_mtime_ns, stat.st_size


def is_maker(facet: Any) -> bool:
    """Whether a facet has the slots and attributes of an op, and so defines it."""
    return getattr(facet, "facet", "") == "proto"
