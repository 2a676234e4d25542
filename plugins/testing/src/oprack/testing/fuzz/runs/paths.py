"""The paths over which an example is run: each gives an Outcome for each run, or None where it does not apply."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from oprack.desc import BlockDesc
from oprack.errors import OprackError
from oprack.ir import Pass, optimize, select_passes
from oprack.kernel import size_limits_ignored
from oprack.packs.manager import PackManager
from oprack.packs.pack import BrokenPackWarning
from oprack.runtime import Executor
from oprack.tensor import LoDTensor, LoDTensorArray, Scope
from oprack.testing.any_kind import copied
from oprack.testing.fuzz.examples.example import Example
from oprack.testing.fuzz.examples.model_bytes import model_bytes
from oprack.testing.fuzz.runs.clones import RunAll, run_clones, run_predictor, run_to_and_fro
from oprack.testing.fuzz.runs.eager import run_eager, run_jit
from oprack.testing.fuzz.runs.outcome import (
    FLUSHED,
    HALVES,
    INTEGERS,
    REORDERED,
    ROUNDED,
    SAME,
    Outcome,
    Tolerance,
    attempt,
)
from oprack.testing.fuzz.runs.predictors import from_cache, make_predictor
from oprack.testing.runner import _identical


@dataclass(frozen=True)
class Path:
    """A way to run a program. run: raises PassFailedError when a pass fails.

    run gives the outcomes of all runs in order, once or several times.

    parts: what it is made of ("plan", "predictor", names of libraries and passes); a defect of some parts is seen on
    every path that has them.
    """

    name: str
    tolerance: Tolerance
    run: Callable[[Example], list[Outcome] | None]
    parts: frozenset[str] = frozenset()


class PassFailedError(Exception):
    """A pass raised; the program would run without it."""


class _Executor(Executor):
    """Gives None for a variable that no op set, since an op may leave outputs out."""

    def _fetched(self, value: Any, name: str, return_numpy: bool, block: BlockDesc) -> Any:
        if value is None:
            return None
        value = super()._fetched(value, name, return_numpy, block)
        return LoDTensorArray(value) if isinstance(value, list) else value


def usable_libraries(manager: PackManager) -> list[str]:
    """Kernel libraries that can be imported."""
    return sorted(n for n, library in manager.extensions.libraries().items() if not isinstance(library, Exception))


@contextlib.contextmanager
def without_size_limits(manager: PackManager) -> Iterator[None]:
    """Kernels serve arrays of every size: declared limits (`min_numel`) and those that libraries compare themselves."""
    with contextlib.ExitStack() as stack:
        stack.enter_context(size_limits_ignored())
        for library in manager.extensions.libraries().values():
            if hasattr(library, "without_size_limits"):
                stack.enter_context(library.without_size_limits())
        yield


def filled_scope(params: dict[str, Any]) -> Scope:
    """A scope with copies of the parameters, since ops may write to them."""
    scope = Scope()
    for name, value in params.items():
        scope.var(name).set(copied(value))
    return scope


def _run_all(executor: Executor, program: Any, example: Example, scope: Scope) -> list[Outcome]:
    def once(run: int) -> Callable[[], dict[str, Any]]:
        def go() -> dict[str, Any]:
            # a pass may have removed an input that nothing needs
            feed = {n: v for n, v in example.feed(run).items() if program.blocks[0].has_var(n)}
            values = executor.run(program, feed, example.fetch, scope, return_numpy=False)
            return dict(zip(example.fetch, values, strict=True))

        return go

    return [attempt(once(run)) for run in range(len(example.runs))]


class Paths:
    """The reference path and all others that the packs of a manager make possible."""

    def __init__(self, manager: PackManager) -> None:
        self.manager = manager
        self.libraries = usable_libraries(manager)
        self._everything = tuple(self.libraries)
        # Asked for every example and path; packs do not change while a search runs.
        self._served_ops: dict[tuple[str, tuple[str, ...]], bool] = {}
        self._rewritten: tuple[Example, set[str]] | None = None  # of the example that runs

    def reference(self, example: Example) -> list[Outcome]:
        """Op by op, without kernel libraries; notes whether the runs leave the parameters as they are."""
        executor, scope = self._executor(prepared=False), filled_scope(example.params)
        outcomes = _run_all(executor, example.program, example, scope)
        example.settled = all(_identical(v, scope.var(n).value) for n, v in example.params.items())
        return outcomes

    def all(self) -> list[Path]:
        """Every path but the reference, the simplest first: the first that differs is the one to look at."""
        found: list[Path] = []

        def add(name: str, tolerance: Tolerance, run: Callable[[Example], Any], *parts: str) -> None:
            run = _without_denormal_inputs(run) if "predictor" in parts else run
            found.append(Path(name, tolerance, run, frozenset(parts)))

        add("plan", SAME, lambda e: self._program(e, prepared=True), "plan")
        for name in self.libraries:
            one = (name,)
            unlimited = self._unlimited(self._with(one, prepared=False))
            add(f"{name} unlimited", ROUNDED, unlimited, name)
            add(f"plan with {name}", ROUNDED, self._with(one, prepared=True), name, "plan")
            unlimited = self._unlimited(self._with(one, prepared=True))
            add(f"plan with {name} unlimited", ROUNDED, unlimited, name, "plan")
        # eager calls take the kernels of all libraries
        for name, run in (("eager", run_eager), ("jit", run_jit)):
            parts = [*self.libraries, name, *(["plan"] if name == "jit" else [])]
            add(name, REORDERED, run, *parts)
            add(f"{name} unlimited", REORDERED, self._unlimited(run), *parts)
        passes = select_passes(manager=self.manager)
        for p in passes:
            needed = (p.library,) if p.library else ()
            tolerance = REORDERED if p.reorders_sums else ROUNDED
            alone = self._alone(p, passes, self._pass([p], needed))
            add(f"pass {p.name}", tolerance, alone, p.name, "plan", *needed)
        plain = [p for p in passes if p.library is None]
        names = [p.name for p in plain]
        add("predictor", FLUSHED, lambda e: self._predictor(e, [], ()), "plan", "predictor")
        add("all passes", REORDERED, self._pass(plain, ()), "plan", *names)
        add("predictor with passes", REORDERED, lambda e: self._predictor(e, plain, ()), "plan", "predictor", *names)
        names = [*(p.name for p in passes), *self.libraries]
        for threads in (1, 2) if self.libraries else ():
            name = f"predictor with passes and libraries, {threads} thread" + "s" * (threads > 1)
            add(name, REORDERED, self._with_all(passes, threads), "plan", "predictor", *names)
        if self.libraries:
            every = ["plan", "predictor", *names]
            add("two clones with passes and libraries", REORDERED, self._with_all(passes, 1, run_clones), *every)
            add("predictor of sizes that come back", REORDERED, self._with_all(passes, 2, run_to_and_fro), *every)
            kept = self._with_all(passes, 1, run_to_and_fro, cached=True)
            add("predictor from the cache of optimised models", REORDERED, kept, *every)
            for precisions, tolerance, least in _PRECISIONS:
                chosen = select_passes(manager=self.manager, precisions=dict.fromkeys(precisions))
                own = [p.name for p in chosen if p.precision]
                first = [p.name for p in chosen if p.precision == precisions[0]]
                if first:
                    rounding = self._of_finite(self._pass(chosen, self.libraries, first), least)
                    add(" and ".join(precisions), tolerance, rounding, "plan", *names, *own)
        return found

    def _executor(self, prepared: bool, libraries: Sequence[str] = ()) -> Executor:
        excluded = [n for n in self.manager.extensions.libraries() if n not in libraries]
        return _Executor(prepared=prepared, manager=self.manager, excluded_libraries=excluded)

    def _program(self, example: Example, prepared: bool, libraries: Sequence[str] = ()) -> list[Outcome]:
        executor = self._executor(prepared, libraries)
        return _run_all(executor, example.program, example, filled_scope(example.params))

    def _with(self, libraries: Sequence[str], prepared: bool) -> Callable[[Example], list[Outcome] | None]:
        """Applies to programs with an op of which a library has a kernel."""

        def run(example: Example) -> list[Outcome] | None:
            if not any(self._serves(op_type, libraries) for op_type in example.op_types):
                return None
            return self._program(example, prepared, libraries)

        return run

    def _serves(self, op_type: str, libraries: Sequence[str]) -> bool:
        key = (op_type, tuple(libraries))
        if key not in self._served_ops:
            kinds = self.manager.place_kinds(op_type) if self.manager.has_op(op_type) else ()
            specs = self.manager.kernel_map(op_type, "cpu") if "cpu" in kinds else ()
            self._served_ops[key] = any(spec.library in libraries for spec in specs)
        return self._served_ops[key]

    def _of_finite(self, run: Callable[[Example], Any], least: int) -> Callable[[Example], Any]:
        """Applies to programs of so many ops at least, without NaN and infinities, which no integer stands for."""

        def finite(example: Example) -> Any:
            if len(example.program.global_block().ops) < least:
                return None
            return run(example) if all(map(_is_finite, _given(example))) else None

        return finite

    def _unlimited(self, run: Callable[[Example], Any]) -> Callable[[Example], Any]:
        def unlimited(example: Example) -> Any:
            with without_size_limits(self.manager):
                return run(example)

        return unlimited

    # Passes -----------------------------------------------------------------------------------------------------------
    def _pass(
        self, passes: Sequence[Pass], libraries: Sequence[str], needed: Collection[str] = ()
    ) -> Callable[[Example], list[Outcome] | None]:
        """needed: names of passes of which one has to rewrite something, or the path does not apply; empty: it does."""

        def run(example: Example) -> list[Outcome] | None:
            chosen = self._chosen(passes, example)
            scope = filled_scope(example.params)
            with warnings.catch_warnings(), without_size_limits(self.manager):
                warnings.simplefilter("ignore", BrokenPackWarning)
                done = optimize(
                    example.program.desc, scope, keep=example.fetch, passes=chosen, manager=self.manager, debug=False
                )
                _raise_failed(done.reports)
                if not chosen or (needed and not any(r.matches for r in done.reports if r.name in needed)):
                    return None
                executor = self._executor(True, libraries)
                return _run_all(executor, done.program, example, scope)

        return run

    def _alone(
        self, one: Pass, passes: Sequence[Pass], run: Callable[[Example], list[Outcome] | None]
    ) -> Callable[[Example], list[Outcome] | None]:
        """The path of one of the passes, which does not apply where it rewrites nothing."""

        def alone(example: Example) -> list[Outcome] | None:
            if self._rewritten is None or self._rewritten[0] is not example:
                self._rewritten = example, self._rewrite(passes, example)
            return run(example) if one.name in self._rewritten[1] else None

        return alone

    def _rewrite(self, passes: Sequence[Pass], example: Example) -> set[str]:
        """Names of the passes of which each by itself rewrites the program, or fails.

        All that come before the first one that rewrites it saw the program as it is, so one look tells of them all.
        """
        found, left = set[str](), self._chosen(passes, example)
        while left:
            scope = filled_scope(example.params)
            given: dict[str, Any] = {"keep": example.fetch, "manager": self.manager, "debug": False}
            with warnings.catch_warnings(), without_size_limits(self.manager):
                warnings.simplefilter("ignore", BrokenPackWarning)
                reports = optimize(example.program.desc, scope, passes=left, **given).reports
            found |= {report.name for report in reports if report.error}
            first = next((i for i, report in enumerate(reports) if report.matches), len(left))
            found |= {p.name for p in left[first : first + 1]}
            left = left[first + 1 :]
        return found

    def _chosen(self, passes: Sequence[Pass], example: Example) -> list[Pass]:
        """Programs with gradients are for training, whose passes do not take parameters for constants."""
        return [p for p in passes if not (example.wrt and p.inference_only)]

    # Predictors -------------------------------------------------------------------------------------------------------
    def _with_all(
        self, passes: Sequence[Pass], threads: int, run_all: RunAll = run_predictor, cached: bool = False
    ) -> Callable[[Example], Any]:
        return self._unlimited(lambda e: self._predictor(e, passes, self._everything, threads, run_all, cached))

    def _predictor(
        self,
        example: Example,
        passes: Sequence[Pass],
        libraries: Sequence[str],
        threads: int = 0,
        run_all: RunAll = run_predictor,
        cached: bool = False,
    ) -> list[Outcome] | None:
        model = model_bytes(example)
        if model is None or (cached and len(example.program.global_block().ops) < _REWRITTEN):
            return None
        chosen = {p.name for p in self._chosen(passes, example)}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            make = partial(make_predictor, model, chosen, threads, self.manager, libraries)
            try:
                predictor = from_cache(make) if cached else make()
            except OprackError as error:
                refused = Outcome(refused=type(error).__name__, text=str(error).partition("\n")[0][:300])
                return [refused for _ in example.runs]
        return None if predictor is None else run_all(predictor, example)


# Ops of a layer that a program quantises: two that round, or round and restore, and the layer.
_ROUNDED_LAYER = 3
# Ops from which on passes have something to rewrite, which a cache then keeps: to write and read a file takes as long
# as all other paths.
_REWRITTEN = 3
# What is asked for, the first of which has to rewrite something; the tolerance; and the ops that there are at least.
_PRECISIONS = (
    (("int8",), INTEGERS, _ROUNDED_LAYER),
    (("bfloat16",), HALVES, 1),
    (("int8", "bfloat16"), HALVES, _ROUNDED_LAYER),
)


def _given(example: Example) -> list[Any]:
    """The values of parameters and feeds."""
    return [*example.params.values(), *(v for values in example.runs for v in values.values())]


def _without_denormal_inputs(run: Callable[[Example], Any]) -> Callable[[Example], Any]:
    """Applies to programs that read no denormal number: to predictors these are 0, whose logarithm is another."""

    def normal(example: Example) -> Any:
        return None if any(map(_has_denormals, _given(example))) else run(example)

    return normal


def _has_denormals(value: Any) -> bool:
    if not isinstance(value, LoDTensor) or not np.issubdtype(value.array.dtype, np.inexact):
        return False
    size = np.abs(value.array)
    return bool(((size > 0) & (size < np.finfo(value.array.dtype).tiny)).any())


def _is_finite(value: Any) -> bool:
    return not isinstance(value, LoDTensor) or value.array.dtype.kind != "f" or bool(np.isfinite(value.array).all())


def _raise_failed(reports: Sequence[Any]) -> None:
    failed = [f"{r.name}: {r.error}" for r in reports if r.error]
    if failed:
        raise PassFailedError("; ".join(failed)[:500])
