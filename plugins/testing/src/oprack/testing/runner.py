"""Runs a file case on an executor and reports the differences from the expected values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np
from oprack.errors import GraphError, OprackError, PackError
from oprack.ir import Pass, optimize, select_passes
from oprack.packs.manager import default_manager
from oprack.program import Program
from oprack.runtime import Checks, Executor
from oprack.tensor import LoDTensor, LoDTensorArray, Scope, SelectedRows, SparseValue
from oprack.testing.any_kind import copied
from oprack.testing.cases import FileCase, Stage, compare

CHECKS = Checks(overwritten_input=True)
"""What conformance tests require of every kernel besides correct values."""


def missing_ops(case: FileCase, stage: Stage, manager: Any) -> list[str]:
    """Op types of the case's program that no pack in use brings.

    Args:
        case: The case.
        stage: Which of its programs.
        manager: The packs.

    Returns:
        The op types.
    """
    return sorted(t for t in case.op_types(stage) if not manager.has_op(t))


def run_case(case: FileCase, stage: Stage, executor: Executor) -> dict[str, Any]:
    """Run a program of a case. Raises what the executor raises.

    Args:
        case: The case.
        stage: Which of its programs.
        executor: The executor.

    Returns:
        The values of all variables that the case expects, by name.
    """
    program, held, feed = _split(case, stage)
    names = [e.name for e in _fetched(case, stage)]
    values = executor.run(program, feed, names, _hold(Scope(), held), return_numpy=False)
    return dict(zip(names, map(_as_array_object, values), strict=True))


def _split(case: FileCase, stage: Stage) -> tuple[Program, dict[str, Any], dict[str, Any]]:
    """(program, inputs to set in a scope, inputs to feed)."""
    inputs = case.inputs(stage)
    held = {n: v for n, v in inputs.items() if n in case.persistable or isinstance(v, SelectedRows)}
    return case.program(stage), held, {n: v for n, v in inputs.items() if n not in held}


def _with_constants(case: FileCase) -> tuple[Program, dict[str, Any], dict[str, Any]]:
    """As _split of the forward program, with all dense inputs but the first as parameters."""
    program, held, feed = _split(case, "forward")
    for name, value in list(feed.items())[1:]:
        if isinstance(value, LoDTensor) and not value.lod:
            program.global_block().vars[name].persistable = True
            held[name] = feed.pop(name)
    return program, held, feed


def _hold(scope: Scope, held: Mapping[str, Any]) -> Scope:
    """Put copies of values into a scope."""
    for name, value in held.items():
        scope.var(name).set(copied(value))
    return scope


@lru_cache(maxsize=2)
def _passes_by_excluded(manager: Any) -> dict[tuple[str, ...], list[Pass]]:
    """Passes for inference by the kernel libraries that are left out: none of them, and all."""
    libraries = tuple(sorted(manager.extensions.libraries()))
    return {x: select_passes(manager=manager, excluded_libraries=x) for x in ((), libraries)}


def _fetched(case: FileCase, stage: Stage) -> list[Any]:
    """The expected outputs, without `intermediate` ones: these are private to Paddle's own gradient kernels."""
    return [e for e in case.expected(stage) if not e.info.get("intermediate")]


def _as_array_object(value: Any) -> Any:
    return LoDTensorArray(value) if isinstance(value, list) else value


def differences(case: FileCase, stage: Stage, got: Mapping[str, Any], scale: float = 1.0) -> list[str]:
    """The differences from the expected values; for stochastic cases, only those of dtype and shape."""
    reasons = []
    for expected in _fetched(case, stage):
        value = got[expected.name]
        if case.stochastic:
            want = expected.value
            if (want.dtype, want.shape) != (value.dtype, value.shape):
                reasons.append(
                    f"{expected.name} is {value.dtype}{list(value.shape)}, expected {want.dtype}{list(want.shape)}"
                )
            continue
        reason = compare(expected, value, scale)
        if reason and stage == "gradient":
            # Where Paddle's own gradient is inaccurate, the numeric gradient decides.
            numeric = case.numeric_gradient(expected.info.get("wrt", ""))
            if numeric is not None and _matches_numeric(value, numeric):
                reason = ""
        if reason:
            reasons.append(f"{expected.name} {reason}")
    return reasons


def _matches_numeric(value: Any, numeric: np.ndarray) -> bool:
    dense = value.to_dense() if isinstance(value, SelectedRows) else np.asarray(value)
    if dense.shape != numeric.shape:
        return False
    known = ~np.isnan(numeric)
    size = float(np.abs(numeric[known]).max()) if known.any() else 0.0
    return bool(np.allclose(dense[known], numeric[known], rtol=1e-2, atol=1e-2 * max(size, 1e-3)))


def check_case(case: FileCase, stage: Stage, manager: Any = None) -> list[str]:
    """Run a case on the reference path, twice on the prepared path, and after passes.

    Args:
        case: The case.
        stage: Its forward program, its gradient or its second gradient.
        manager: The packs; default: those of the process.

    Returns:
        The differences from Paddle and between the paths.
    """
    reference = Executor(prepared=False, checks=CHECKS, manager=manager)
    try:
        got = run_case(case, stage, reference)
    except PackError:  # no matter of this case
        raise
    except OprackError as error:
        return [f"{type(error).__name__}: {error}"]
    reasons = differences(case, stage, got)
    prepared = Executor(prepared=True, manager=manager)
    for round_name in ("first", "second"):
        again = run_case(case, stage, prepared)
        if case.stochastic:
            continue
        reasons += [
            f"{name}: the prepared path gives other numbers in its {round_name} run"
            for name, value in got.items()
            if not _identical(value, again[name])
        ]
    return reasons if reasons or stage != "forward" else check_rewritten(case, got, manager)


def check_rewritten(case: FileCase, plain: Mapping[str, Any], manager: Any = None) -> list[str]:
    """Run the forward program of a case as a plan after all passes, with all kernel libraries and with none.

    It runs with all inputs fed, and with all but the first as parameters, which passes may treat as constants.

    Args:
        case: The case.
        plain: The outputs of the program without passes.
        manager: The packs; default: those of the process.

    Returns:
        The differences from `plain` beyond the case's tolerances.
    """
    manager = manager or default_manager()
    reasons = []
    for excluded, passes in _passes_by_excluded(manager).items():
        where = f"after the passes without {', '.join(excluded)}" if excluded else "after all passes"
        executor = Executor(manager=manager, excluded_libraries=excluded)
        for constants in (False, True):
            program, held, feed = _with_constants(case) if constants else _split(case, "forward")
            scope, names = _hold(Scope(), held), [e.name for e in _fetched(case, "forward")]
            try:
                optimized = optimize(program.desc, scope, keep=names, passes=passes, manager=manager, debug=True)
                for _ in range(2):  # traced, then as a plan
                    _hold(scope, held)
                    values = executor.run(optimized.program, feed, names, scope, return_numpy=False)
            except (GraphError, OprackError) as error:
                reasons.append(f"{where}: {type(error).__name__}: {error}")
                continue
            reasons += [f"{where}: {r.name} failed: {r.error}" for r in optimized.reports if r.error]
            if case.stochastic:
                continue
            for expected, value in zip(_fetched(case, "forward"), map(_as_array_object, values), strict=True):
                reason = compare(replace(expected, value=plain[expected.name]), value)
                reasons += [f"{expected.name} {where} {reason}"] if reason else []
    return reasons


def _identical(a: Any, b: Any) -> bool:
    if isinstance(a, LoDTensorArray):
        return len(a) == len(b) and all(_identical(x, y) for x, y in zip(a, b, strict=True))
    if isinstance(a, SparseValue):
        same = all(np.array_equal(x, y) for x, y in zip(a.pattern, b.pattern, strict=True))
        return same and np.array_equal(a.elements, b.elements, equal_nan=a.elements.dtype.kind in "fc")
    x, y = np.asarray(a), np.asarray(b)
    return a.lod == b.lod and x.dtype == y.dtype and np.array_equal(x, y, equal_nan=x.dtype.kind in "fc")
