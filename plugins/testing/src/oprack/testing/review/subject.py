"""What is reviewed: a pack's source tree, loaded as if it were installed, and its cases."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from oprack.errors import OprackError
from oprack.packs.installed.entry_points import GROUP
from oprack.packs.installed.manifest import Manifest
from oprack.packs.manager import PackManager, use_manager
from oprack.packs.pack import PackInfo, PackWarning
from oprack.testing.case_folder import collect_cases
from oprack.testing.op_case import OpCase
from oprack.testing.review.pack_source import PackSource, find_source, generate, importable


@dataclass(frozen=True)
class Finding:
    """Something that a review found.

    Attributes:
        part: Which part of the review.
        text: What is wrong, and where.
        fix: What to do about it.
        note: Whether it may be meant so; a note fails no check.
    """

    part: str
    text: str
    fix: str
    note: bool = False


@dataclass
class Subject:
    """A pack under review.

    Attributes:
        path: Its project directory, as the user gave it.
        source: Where its parts lie.
        manager: The installed packs, and this one from its source tree.
        manifest: What its ops.toml should say.
        broken: Why it can't be loaded; "" when it can.
        cases: Its OpCase records.
        case_error: Why these can't be read.
    """

    path: Path
    source: PackSource
    manager: PackManager
    manifest: Manifest
    broken: str = ""
    cases: list[OpCase] = field(default_factory=list)
    case_error: str = ""

    @property
    def ops(self) -> list[str]:
        """Op types that it defines, by its manifest or by its hooks, and that can be had."""
        defined = {*self.manifest.ops, *(t for p in self.manager.packs() if self._is(p) for t in p.op_types)}
        return sorted(t for t in defined if self.manager.has_op(t) and self._owns(t))

    def _is(self, pack: PackInfo) -> bool:
        return pack.distribution == self.source.distribution

    def _owns(self, op_type: str) -> bool:
        return self.manager.owner(op_type) == self.source.distribution

    def cases_of(self, op_type: str) -> list[OpCase]:
        """The cases of an op."""
        return [c for c in self.cases if c.op == op_type]

    def runs_itself(self, op_type: str) -> bool:
        """Whether the op has an operator class in place of kernels."""
        return self.manager.operator_class(op_type) is not None


@contextmanager
def subject_of(path: Path) -> Iterator[Subject]:
    """Load a pack from its project directory, and make it the one that is used, for the length of a with block.

    Raises:
        NotFoundError: There is no pack.
    """
    import importlib_metadata

    source = find_source(path)
    installed = [e for e in importlib_metadata.entry_points(group=GROUP) if _owner(e) != source.distribution]
    point = SimpleNamespace(
        name=source.name,
        value=source.entry_point,
        dist=SimpleNamespace(name=source.distribution, version=source.version),
    )
    with importable(source), warnings.catch_warnings():
        warnings.simplefilter("ignore", PackWarning)
        with use_manager(PackManager([*installed, point])) as manager:
            subject = Subject(path, source, manager, Manifest({}, {}, {}))
            _load(subject)
            yield subject


def _owner(entry_point: Any) -> str:
    return entry_point.dist.name if entry_point.dist is not None else ""


def _load(subject: Subject) -> None:
    try:
        subject.manifest = generate(subject.source)
    except OprackError as e:
        subject.broken = f"{type(e).__name__}: {e}"
        return
    for pack in subject.manager.packs():
        if pack.distribution == subject.source.distribution and pack.status == "broken":
            subject.broken = pack.error
    folder = subject.path / "tests" / "cases"
    if folder.is_dir():
        try:
            subject.cases = collect_cases(folder)
        except Exception as e:  # whatever a file of cases raises
            subject.case_error = f"{type(e).__name__}: {e}"
