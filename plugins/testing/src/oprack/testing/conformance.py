"""The conformance suite: what every op of every pack must satisfy. A pack adopts it in a few lines:

from oprack.testing import Conformance, Limitation, collect_cases

class TestMath(Conformance):
    pack = "math"
    cases = collect_cases(Path(__file__).parent / "cases")
    case_files = Path(__file__).parent / "recorded"
    limitations = [Limitation("pow.0012", "Paddle's own gradient is off at 0", stages=("gradient",))]
"""

from __future__ import annotations

import fnmatch
import functools
import inspect
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from oprack.errors import ManifestError, UnknownOpError
from oprack.packs.manager import default_manager
from oprack.testing import FUZZED, LIMITATION
from oprack.testing.case_folder import case_to_write, shown
from oprack.testing.cases import FileCase, Stage, load_cases
from oprack.testing.op_case import OpCase
from oprack.testing.runner import check_case, missing_ops

STAGES: tuple[Stage, ...] = ("forward", "gradient", "gradient2")


@dataclass(frozen=True)
class Limitation:
    """A known gap: cases that may differ.

    Attributes:
        cases: A pattern of their ids, such as "gru.*".
        reason: Why they differ.
        stages: The stages at which they may.
    """

    cases: str
    reason: str
    stages: tuple[Stage, ...] = STAGES

    def covers(self, case_id: str, stage: Stage) -> bool:
        """Whether a case, at a stage, is meant.

        Args:
            case_id: The case.
            stage: Its forward program, its gradient or the gradient of that.

        Returns:
            Whether it is.
        """
        return stage in self.stages and fnmatch.fnmatchcase(case_id, self.cases)


@functools.lru_cache(maxsize=4)
def _cases_of(path: Path) -> list[FileCase]:
    return list(load_cases(path))


class Conformance:
    """Tests of one pack, collected by pytest from a subclass.

    pack: name of its entry point. case_files: a folder of .npz case files (one per op type; sub-folders count, too),
    or None. cases: OpCase records, such as those that collect_cases finds in one file for each op. limitations: known
    gaps, each with its reason; one that no longer fails is an error. without_cases, without_gradients: ops that no case
    runs, or of which none compares the gradient, each with the reason, such as the test that does; one that has such a
    case is an error. fuzz_examples: generated calls of each op, made
    of the cases, that all paths must agree on (docs/fuzzing.md); 0 = none. fuzz_known: TOML file of differences that
    are known.
    """

    pack: ClassVar[str] = ""
    case_files: ClassVar[Path | None] = None
    cases: ClassVar[Sequence[OpCase]] = ()
    limitations: ClassVar[Sequence[Limitation]] = ()
    without_cases: ClassVar[Mapping[str, str]] = {}
    without_gradients: ClassVar[Mapping[str, str]] = {}
    fuzz_examples: ClassVar[int] = 0
    fuzz_known: ClassVar[Path | None] = None

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        # a test without anything to run on would be a skip that says nothing
        if not cls.cases:
            cls.test_record = None  # type: ignore[assignment, method-assign]
        if cls.case_files is None:
            cls.test_case_file = None  # type: ignore[assignment, method-assign]
        if not cls.fuzz_examples:
            cls.test_generated_calls = None  # type: ignore[assignment, method-assign]

    # pytest calls this for every test of the class -------------------------------------------------------------------
    @classmethod
    def pytest_generate_tests(cls, metafunc: Any) -> None:
        """Give each test its ops, files or records."""
        if "op_type" in metafunc.fixturenames:
            metafunc.parametrize("op_type", cls.op_types())
        if "case_file" in metafunc.fixturenames:
            files = list(cls.files())
            metafunc.parametrize("case_file", files, ids=[f"{f.parent.name}-{f.stem}" for f in files])
        if "record" in metafunc.fixturenames:
            metafunc.parametrize("record", cls.cases, ids=[c.id for c in cls.cases])

    @classmethod
    def op_types(cls) -> list[str]:
        """Op types that the pack defines.

        Raises:
            UnknownOpError: The pack is not installed, or could not be loaded.
        """
        found = [p for p in default_manager().packs() if p.name == cls.pack]
        if not found or found[0].status != "ok":
            state = (
                f"is {found[0].status}: {found[0].error}; run `oprack doctor`"
                if found
                else "is not installed; `pip install -e .` in its folder installs it, or set `pack` to another name"
            )
            raise UnknownOpError(f"conformance of pack {cls.pack!r}: it {state}")
        return sorted(found[0].op_types)

    # `oprack check` reads a suite by these, too -----------------------------------------------------------------------
    @classmethod
    def files(cls) -> Iterator[Path]:
        """The case files of the pack's ops.

        Yields:
            Each file.
        """
        if cls.case_files is not None:
            own = set(cls.op_types())
            yield from (f for f in sorted(cls.case_files.rglob("*.npz")) if f.stem in own)

    @classmethod
    def has_cases(cls, op_type: str) -> bool:
        """Whether some case runs an op: a file of its own, a record, or a program of another file that has it."""
        if any(c.op == op_type for c in cls.cases) or any(f.stem == op_type for f in cls.files()):
            return True
        return cls.case_files is not None and op_type in _ops_in(cls.case_files, STAGES)

    @classmethod
    def compares_gradient(cls, op_type: str) -> bool:
        """Whether some case compares the gradient of an op: a record that says so, or a file case that has one."""
        if any(c.grads for c in cls.cases if c.op == op_type):
            return True
        return cls.case_files is not None and op_type in _ops_in(cls.case_files, ("gradient",))

    @classmethod
    def check_file(cls, case_file: Path) -> tuple[list[str], list[str], list[list[str]]]:
        """Run all cases of one file, forward and gradients, on every path.

        Args:
            case_file: The file.

        Returns:
            What fails; limitations that are none any more; case, stage and reason of those that are met.
        """
        failures, stale, met = [], [], []
        for case in _cases_of(case_file):
            for stage in STAGES:
                if not case.has(stage) or missing_ops(case, stage, default_manager()):
                    continue
                known = cls._limitation(case.id, stage)
                reasons = check_case(case, stage)
                if reasons and known is not None:
                    met.append([case.id, stage, known.reason])
                if reasons and known is None:
                    failures.append(f"{case.id} {stage}: " + "; ".join(reasons))
                if not reasons and known is not None and known.cases == case.id:
                    stale.append(f"{case.id} {stage} passes now: {known.reason}")
        return failures, stale, met

    @classmethod
    def _folder(cls) -> Path:
        """The folder of tests that has the suite."""
        return Path(inspect.getfile(cls)).parent

    @classmethod
    def _bake(cls) -> str:
        """What to do about a manifest that lacks ops."""
        project = next((f for f in cls._folder().parents if (f / "pyproject.toml").is_file()), None)
        return "run `oprack manifest` on the project" if project is None else f"run `oprack manifest {shown(project)}`"

    @classmethod
    def _unlisted(cls) -> set[str]:
        """Ops that modules of the pack define, but its manifest lacks."""
        from oprack.packs.installed.resolve import package_directory
        from oprack.testing.review.pack_source import defined_ops

        (found,) = [p for p in default_manager().packs() if p.name == cls.pack]
        module = found.entry_point.partition(":")[0]
        package = module if package_directory(module) else module.rpartition(".")[0]
        return defined_ops(package) - set(found.op_types)

    @classmethod
    def _limitation(cls, case_id: str, stage: Stage) -> Limitation | None:
        return next((x for x in cls.limitations if x.covers(case_id, stage)), None)

    # The tests --------------------------------------------------------------------------------------------------------
    def test_op_is_documented_and_complete(self, op_type: str) -> None:
        """Documentation for op, slots and attributes; a shape rule; kernels that match the op, or an operator class."""
        manager = default_manager()
        info = manager.op_info(op_type)
        proto = info.proto
        assert proto.doc, f"{op_type}: the definition class has no docstring"
        declared: list[Any] = [*proto.inputs.values(), *proto.outputs.values(), *proto.attrs.values()]
        undocumented = [d.name for d in declared if not d.doc]
        assert not undocumented, f"{op_type}: no documentation for {undocumented}"
        if manager.operator_class(op_type) is None:
            assert info.infer_shape is not None, f"{op_type}: no infer_shape"
            kernels = list(manager.kernel_map(op_type, "cpu"))
            assert kernels, f"{op_type}: no kernel for place cpu"

    def test_op_has_cases(self, op_type: str) -> None:
        """Some case runs the op, or the suite says why none does.

        Raises:
            AssertionError: With the case to write.
        """
        reason, found = self.without_cases.get(op_type), self.has_cases(op_type)
        if not (found or reason):
            advice = case_to_write(default_manager().op_info(op_type).proto, self._folder() / "cases")
            raise AssertionError(f"{op_type}: no case runs it; {advice}")
        assert not (found and reason), f"{op_type} has a case now; take it out of without_cases ({reason})"
        known = self.without_gradients.get(op_type)
        assert not (known and self.compares_gradient(op_type)), (
            f"{op_type} has a case of its gradient now; take it out of without_gradients ({known})"
        )

    def test_manifest_has_every_op(self) -> None:
        """An op that `oprack manifest` was not run for is found by nobody, and by no other test.

        Raises:
            ManifestError: With the ops, and the command that lists them.
        """
        if lacking := sorted(self._unlisted()):
            raise ManifestError(f"{self.pack}: ops.toml lacks {', '.join(lacking)}; {self._bake()}")

    def test_definitions_import_no_array_library(self) -> None:
        """Definitions are imported to print documentation and to check programs, also where no array library is."""
        # classes derived from OperatorWithKernel are code that runs ops, and come with it
        plain = [t for t in self.op_types() if default_manager().op_info(t).creator is None]
        code = (
            "import sys; from oprack.packs.manager import default_manager as m; "
            f"[m().op_info(t) for t in {plain!r}]; "
            "print([m for m in ('numpy', 'cupy') if m in sys.modules])"
        )
        run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
        assert run.returncode == 0, run.stderr
        assert run.stdout.strip() == "[]", f"definitions of pack {self.pack} import {run.stdout.strip()}"

    def test_case_file(self, case_file: Path, record_property: Callable[[str, object], None]) -> None:
        """All cases of one file, forward and gradients, on both paths."""
        failures, stale, met = self.check_file(case_file)
        for row in met:
            record_property(LIMITATION, row)
        assert not failures, "\n".join(failures)
        assert not stale, "limitations that are none any more:\n" + "\n".join(stale)

    def test_record(self, record: OpCase) -> None:
        """An OpCase: outputs, and gradients against central differences."""
        if not default_manager().has_op(record.op):
            self.test_manifest_has_every_op()  # which says more than that the op is unknown
        reasons = record.check()
        assert not reasons, "\n".join(reasons)

    def test_generated_calls(self, op_type: str, record_property: Callable[[str, object], None]) -> None:
        """Calls that nobody chose: every path gives what the reference path gives, or refuses what it refuses."""
        from oprack.testing.fuzz import Checker, op_examples, read_known, script, search, seeds

        manager = default_manager()
        if "cpu" not in manager.place_kinds(op_type):
            return
        calls = seeds(op_type, [self.case_files] if self.case_files else [], self.cases)
        if not calls:
            return
        checker = Checker(manager)
        known = read_known(self.fuzz_known) if self.fuzz_known else []
        found = search(op_examples(calls), checker, seed=0, examples=self.fuzz_examples, known=known)
        record_property(FUZZED, checker.tally.examples)
        assert found is None, f"{found.difference}\n\n{script(found.example, found.difference)}"


@functools.cache
def _ops_in(folder: Path, stages: tuple[Stage, ...]) -> frozenset[str]:
    """Op types that the programs of these stages run in a folder of case files."""
    return frozenset(
        t for f in folder.rglob("*.npz") for c in load_cases(f) for s in stages if c.has(s) for t in c.op_types(s)
    )
