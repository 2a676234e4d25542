"""Runs a file case through an executor and says what differs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from oprack.errors import OprackError
from oprack.runtime import Checks, Executor
from oprack.tensor import LoDTensor, LoDTensorArray, Scope, SelectedRows
from oprack.testing.cases import FileCase, Stage, compare

CHECKS = Checks(overwritten_input=True, shapes=True)
"""What conformance demands of every kernel besides its numbers."""


def missing_ops(case: FileCase, stage: Stage, manager: Any) -> list[str]:
    """Op types of the case's program that no pack in use brings."""
    return sorted(t for t in case.op_types(stage) if not manager.has_op(t))


def run_case(case: FileCase, stage: Stage, executor: Executor) -> dict[str, Any]:
    """Values by variable, of everything the case expects. Raises what the executor raises."""
    program = case.program(stage)
    scope, feed = Scope(), {}
    for name, value in case.inputs(stage).items():
        if name in case.persistable or isinstance(value, SelectedRows):
            scope.var(name).set(copied(value))
        else:
            feed[name] = value
    names = [e.name for e in _fetched(case, stage)]
    values = executor.run(program, feed, names, scope, return_numpy=False)
    return dict(zip(names, map(_as_array_object, values), strict=True))


def _fetched(case: FileCase, stage: Stage) -> list[Any]:
    """`intermediate` outputs are no part of a contract: Paddle keeps them for its own gradient kernels."""
    return [e for e in case.expected(stage) if not e.info.get("intermediate")]


def _as_array_object(value: Any) -> Any:
    return LoDTensorArray(value) if isinstance(value, list) else value


def copied(value: Any) -> Any:
    """A value with memory of its own, since ops may write to it in place."""
    if isinstance(value, LoDTensor):
        return LoDTensor(value.array.copy(), value.lod, check=False)
    if isinstance(value, SelectedRows):
        return SelectedRows(value.rows.copy(), value.value.copy(), value.height)
    return LoDTensorArray(copied(t) for t in value)


def differences(case: FileCase, stage: Stage, got: Mapping[str, Any], scale: float = 1.0) -> list[str]:
    """What differs from the expected values; for stochastic cases only dtype and shape count."""
    found = []
    for expected in _fetched(case, stage):
        value = got[expected.name]
        if case.stochastic:
            want = expected.value
            if (want.dtype, want.shape) != (value.dtype, value.shape):
                found.append(
                    f"{expected.name} is {value.dtype}{list(value.shape)}, expected {want.dtype}{list(want.shape)}"
                )
            continue
        reason = compare(expected, value, scale)
        if reason and stage == "gradient":
            # where Paddle's own gradient is numerically off, the mathematics counts
            numeric = case.numeric_gradient(expected.info.get("wrt", ""))
            if numeric is not None and _matches_numeric(value, numeric):
                reason = ""
        if reason:
            found.append(f"{expected.name} {reason}")
    return found


def _matches_numeric(value: Any, numeric: np.ndarray) -> bool:
    dense = value.to_dense() if isinstance(value, SelectedRows) else np.asarray(value)
    if dense.shape != numeric.shape:
        return False
    known = ~np.isnan(numeric)
    size = float(np.abs(numeric[known]).max()) if known.any() else 0.0
    return bool(np.allclose(dense[known], numeric[known], rtol=1e-2, atol=1e-2 * max(size, 1e-3)))


def check_case(case: FileCase, stage: Stage, manager: Any = None) -> list[str]:
    """Run a case on the reference path and twice prepared; what differs from Paddle, or between the paths."""
    reference = Executor(prepared=False, checks=CHECKS, manager=manager)
    try:
        got = run_case(case, stage, reference)
    except OprackError as error:
        return [f"{type(error).__name__}: {error}"]
    found = differences(case, stage, got)
    prepared = Executor(prepared=True, manager=manager)
    for round_name in ("first", "second"):
        again = run_case(case, stage, prepared)
        if case.stochastic:
            continue
        found += [
            f"{name}: the prepared path gives other numbers in its {round_name} run"
            for name, value in got.items()
            if not _identical(value, again[name])
        ]
    return found


def _identical(a: Any, b: Any) -> bool:
    if isinstance(a, LoDTensorArray):
        return len(a) == len(b) and all(_identical(x, y) for x, y in zip(a, b, strict=True))
    if isinstance(a, SelectedRows):
        return np.array_equal(a.rows, b.rows) and np.array_equal(a.value, b.value, equal_nan=a.value.dtype.kind in "fc")
    x, y = np.asarray(a), np.asarray(b)
    return a.lod == b.lod and x.dtype == y.dtype and np.array_equal(x, y, equal_nan=x.dtype.kind in "fc")
