"""What is reviewed: a pack's source tree, loaded as if it were installed, and its cases."""

from __future__ import annotations

import importlib.util
import re
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

from oprack.errors import OprackError
from oprack.packs.installed.entry_points import GROUP
from oprack.packs.installed.manifest import Manifest
from oprack.packs.manager import PackManager, use_manager
from oprack.packs.pack import PackInfo, PackWarning
from oprack.testing.case_folder import case_file, collect_cases
from oprack.testing.conformance import Conformance
from oprack.testing.fuzz.examples.calls import OpCall, recorded
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
        suites: Its conformance suites, which have its cases.
        case_error: Why these can't be read.
        each: Called with what a part goes through and what that is; gives it back, and may show how far it is.
    """

    path: Path
    source: PackSource
    manager: PackManager
    manifest: Manifest
    broken: str = ""
    suites: list[type[Conformance]] = field(default_factory=list)
    case_error: str = ""
    each: Callable[[Sequence[Any], str], Iterable[Any]] = lambda items, what: items
    _calls: dict[str, list[OpCall]] = field(default_factory=dict)

    @property
    def records(self) -> list[OpCase]:
        """Its OpCase records."""
        return [case for suite in self.suites for case in suite.cases]

    @property
    def case_folder(self) -> Path:
        """Where its records are written."""
        return self.path / "tests" / "cases"

    def case_file(self, op_type: str) -> str:
        """Where records of an op are, or are to be written."""
        return case_file(op_type, self.case_folder)

    @property
    def case_folders(self) -> list[Path]:
        """Where its case files are."""
        return [suite.case_files for suite in self.suites if suite.case_files is not None]

    @property
    def ops(self) -> list[str]:
        """Op types that it defines, by its manifest or by its hooks, and that can be had."""
        defined = {*self.manifest.ops, *(t for p in self.manager.packs() if self._is(p) for t in p.op_types)}
        return sorted(t for t in defined if self.manager.has_op(t) and self._owns(t))

    def _is(self, pack: PackInfo) -> bool:
        return pack.distribution == self.source.distribution

    def _owns(self, op_type: str) -> bool:
        return self.manager.owner(op_type) == self.source.distribution

    def records_of(self, op_type: str) -> list[OpCase]:
        """The records of an op."""
        return [c for c in self.records if c.op == op_type]

    def calls_of(self, op_type: str) -> list[OpCall]:
        """Calls of an op, from all records and from some cases of files."""
        if op_type not in self._calls:
            self._calls[op_type] = recorded(op_type, self.case_folders, self.records, manager=self.manager)
        return self._calls[op_type]

    def has_cases(self, op_type: str) -> bool:
        """Whether a case runs an op, or a suite says why none does."""
        return any(s.has_cases(op_type) or op_type in s.without_cases for s in self.suites)

    def compares_gradient(self, op_type: str) -> bool:
        """Whether a case compares the gradient of an op, or a suite says why none does."""
        return any(
            op_type in {**s.without_cases, **s.without_gradients} or s.compares_gradient(op_type) for s in self.suites
        )

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
    try:
        subject.suites = _suites(subject)
    except Exception as e:  # whatever a file of cases or tests raises
        subject.case_error = f"{type(e).__name__}: {e}"


def _suites(subject: Subject) -> list[type[Conformance]]:
    """The classes derived from Conformance in tests/, for this pack; without one, a suite of tests/cases."""
    tests = subject.path.resolve() / "tests"
    found: list[type[Conformance]] = []
    for file in sorted(tests.rglob("test_*.py")):
        if "Conformance" in file.read_text("utf-8"):
            values = list(vars(_imported(file)).values())
            classes = [v for v in values if isinstance(v, type) and issubclass(v, Conformance)]
            found += [c for c in classes if c.pack == subject.source.name]
    folder = tests / "cases"
    if not found and folder.is_dir():
        found = [type("Suite", (Conformance,), {"pack": subject.source.name, "cases": collect_cases(folder)})]
    return found


def _imported(file: Path) -> ModuleType:
    """A module of tests, as pytest imports it by --import-mode=importlib."""
    name = "suite_in_" + re.sub(r"\W", "_", str(file.with_suffix("")))
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, file)
        assert spec is not None and spec.loader is not None, file
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        try:
            spec.loader.exec_module(module)
        except BaseException:
            del sys.modules[name]
            raise
    return sys.modules[name]
