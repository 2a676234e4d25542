"""Runs an example on the reference path and on all others, and says what differs."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from oprack.packs.manager import PackManager, default_manager
from oprack.program import Program
from oprack.runtime import Executor
from oprack.tensor import LoDTensor, LoDTensorArray, SparseValue
from oprack.testing.fuzz.examples.example import Example
from oprack.testing.fuzz.runs.outcome import SAME, ULPS, Difference, Outcome, compared, differing
from oprack.testing.fuzz.runs.paths import PassFailedError, Path, Paths, _Executor, _run_all, filled_scope
from oprack.types import VarType


@dataclass
class Tally:
    """Counts: examples, how many of their runs the reference accepted or refused, and runs by path."""

    examples: int = 0
    accepted: int = 0
    refused: int = 0
    by_path: Counter[str] = field(default_factory=Counter)

    def add(self, other: Tally) -> None:
        self.examples += other.examples
        self.accepted += other.accepted
        self.refused += other.refused
        self.by_path.update(other.by_path)


class Checker:
    """Compares paths with the reference path.

    only: patterns of path names (as of fnmatch); default: all. watch: called with the name of each path before it runs,
    so that the culprit is known when the process dies. skip: paths that are not run for an example.
    """

    def __init__(
        self,
        manager: PackManager | None = None,
        only: Sequence[str] = (),
        watch: Callable[[str], None] | None = None,
    ) -> None:
        import fnmatch

        self.manager = manager or default_manager()
        self._paths = Paths(self.manager)
        every = self._paths.all()
        self.paths = [p for p in every if not only or any(fnmatch.fnmatchcase(p.name, o) for o in only)]
        self._watch = watch or (lambda name: None)
        self.skip: Callable[[str, Example], bool] = lambda path, example: False
        self.tally = Tally()

    def reference(self, example: Example) -> list[Outcome]:
        """What the reference path gives."""
        return self._paths.reference(example)

    def check(self, example: Example, names: Sequence[str] = (), first: bool = False) -> list[Difference]:
        """What differs, path by path. names: of the paths to run, default: all. first: stop at the first difference."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # paths may repeat what the reference warned of
            return self._check(example, names, first)

    def _check(self, example: Example, names: Sequence[str], first: bool) -> list[Difference]:
        self._watch("reference")
        self.tally.examples += 1
        reference = self._paths.reference(example)
        ran = sum(o.ok for o in reference)
        self.tally.accepted += ran
        self.tally.refused += len(reference) - ran
        moved: dict[float, list[list[Outcome]]] = {}
        example = _without_unset(example, reference)
        found = []
        for path in self.paths:
            if (names and path.name not in names) or self.skip(path.name, example):
                continue
            self._watch(path.name)
            difference = self._check_path(path, example, reference, moved)
            if difference is not None:
                found.append(difference)
                if first:
                    break
        self._watch("")
        return found

    def _check_path(
        self, path: Path, example: Example, reference: list[Outcome], moved: dict[float, list[list[Outcome]]]
    ) -> Difference | None:
        try:
            outcomes = path.run(example)
        except PassFailedError as error:
            # a rule may stumble over what the op would refuse
            return Difference(path.name, "failed", 0, "", str(error)) if all(o.ok for o in reference) else None
        if outcomes is None:
            return None
        self.tally.by_path[path.name] += len(outcomes)
        for i, got in enumerate(outcomes):
            run = i % len(reference)
            want = reference[run]
            found = differing(path.name, run, want, got)
            if found is not None:
                return found
            difference = self._compared(path, example, run, want, got, moved) if want.ok else None
            if difference is not None and not self._drawn_elsewhere(path, example):
                name, kind, text = difference
                # what came of a NaN may be finite again further on: relu makes it 0
                kind = "nan" if kind == "value" and _holds_specials(example) else kind
                return Difference(path.name, kind, run, name, text)
        return None

    def _compared(
        self,
        path: Path,
        example: Example,
        run: int,
        want: Outcome,
        got: Outcome,
        moved: dict[float, list[list[Outcome]]],
    ) -> tuple[str, str, str] | None:
        """What differs by more than the path's tolerance, and than what rounding does to the reference itself.

        moved: by the tolerance's step, outcomes in float64, then with inputs changed by rounding; filled in when they
        are first asked for, since they cost four more runs.
        """
        difference = compared(want.values, got.values, path.tolerance)
        if difference is None or not path.tolerance.factor:
            return difference
        step = path.tolerance.step
        if step not in moved:
            moved[step] = [self._wide(example), *(self._moved(example, seed, step) for seed in (1, 2, 3))]
        wide, *near = moved[step]
        beside = [m[run].values for m in near if m[run].ok]
        exact = wide[run].values if wide[run].ok else {}
        return compared(want.values, got.values, path.tolerance, beside, exact)

    def _drawn_elsewhere(self, path: Path, example: Example) -> bool:
        """Whether the program draws random numbers, and the path draws others: they go by the place of an op."""
        if path.parts <= {"plan", *self.manager.extensions.libraries()}:
            return False
        twice = [self._reference(example, seed) for seed in (1, 2)]
        return any(compared(a.values, b.values, SAME) is not None for a, b in zip(*twice, strict=True))

    def _moved(self, example: Example, seed: int, step: float) -> list[Outcome]:
        """The reference with every float that goes in moved by a few units in the last place, or `step` times itself,
        and another seed.
        """
        rng = np.random.default_rng(seed)
        return self._reference(_mapped(example, lambda v: _changed(v, lambda a: _stepped(a, rng, step))), seed)

    def _wide(self, example: Example) -> list[Outcome]:
        """The reference in float64, as far as the program's attributes let it."""
        wide = _mapped(example, lambda v: _changed(v, _widened))
        wide.program = Program(example.program.desc.clone())
        for block in wide.program.blocks:
            for var in block.vars.values():
                var.dtype = VarType.FP64 if var.dtype is VarType.FP32 else var.dtype
        return self._reference(wide, 0)

    def _reference(self, near: Example, seed: int) -> list[Outcome]:
        excluded = list(self.manager.extensions.libraries())
        executor: Executor = _Executor(prepared=False, manager=self.manager, excluded_libraries=excluded, seed=seed)
        return _run_all(executor, near.program, near, filled_scope(near.params))


def _without_unset(example: Example, reference: Sequence[Outcome]) -> Example:
    """Without fetching what the op leaves out: an executor says so, and the reference gives None."""
    values = [o.values for o in reference if o.ok]
    unset = {n for n in example.fetch if values and all(v[n] is None for v in values)}
    return replace(example, fetch=[n for n in example.fetch if n not in unset]) if unset else example


def _holds_specials(example: Example) -> bool:
    """Whether a parameter or feed holds a NaN or an infinity."""
    floats: list[np.ndarray] = []

    def seen(array: np.ndarray) -> np.ndarray:
        floats.append(array)
        return array

    _mapped(example, lambda v: _changed(v, seen))
    return not all(np.isfinite(array).all() for array in floats)


def _mapped(example: Example, function: Callable[[Any], Any]) -> Example:
    """The example with a function applied to every value that goes in."""
    params = {n: function(v) for n, v in example.params.items()}
    return replace(example, params=params, runs=[{n: function(v) for n, v in run.items()} for run in example.runs])


def _changed(value: Any, function: Callable[[np.ndarray], np.ndarray]) -> Any:
    if isinstance(value, LoDTensorArray):
        return LoDTensorArray(None if t is None else _changed(t, function) for t in value)
    if isinstance(value, SparseValue):
        return value.rebuilt(value.pattern, function(value.elements))
    return LoDTensor(function(value.array), value.lod, check=False)


def _widened(array: np.ndarray) -> np.ndarray:
    return array.astype(np.float64) if array.dtype == np.float32 else array


def _stepped(array: np.ndarray, rng: np.random.Generator, step: float) -> np.ndarray:
    if array.dtype.kind != "f" or not array.size:
        return array
    if step:
        with np.errstate(all="ignore"):
            moved: np.ndarray = (array * (1 + step * rng.choice((-1.0, 1.0), array.shape))).astype(array.dtype)
        return moved
    towards = np.where(rng.random(array.shape) < 0.5, -np.inf, np.inf).astype(array.dtype)
    with np.errstate(all="ignore"):
        for _ in range(ULPS):
            array = np.where(np.isfinite(array), np.nextafter(array, towards), array).astype(array.dtype)
    return array
