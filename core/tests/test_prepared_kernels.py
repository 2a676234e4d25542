"""Kernels that prepare themselves for an op of a plan, and kernels that leave small arrays to others."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from oprack.kernel import KernelSpecialization, kernel
from oprack.packs.manager import PackManager
from oprack.program import Program
from oprack.runtime import Executor
from oprack.tensor import Scope

Build = Callable[..., Program]
CALLS: list[str] = []
SEEN: list[KernelSpecialization] = []


def _specialize(call: KernelSpecialization) -> Any:
    SEEN.append(call)
    return partial(call.xp.multiply, call.xp.asarray(call.attrs["factor"], call.dtypes["X"][0]))


@kernel("double", library="fast", priority=2, specialize=_specialize)
def double_prepared(X: Any, *, factor: Any, out: Any = None) -> Any:
    return np.multiply(X, X.dtype.type(factor), out=out)


@kernel("double", library="large", priority=3, min_numel=100)
def double_large(X: Any, *, factor: Any) -> Any:
    CALLS.append("large")
    return X * X.dtype.type(factor)


def run(exe: Executor, program: Program, x: Any) -> Any:
    return exe.run(program, {"x": x}, ["y"], Scope())[0]


@pytest.fixture(autouse=True)
def fresh() -> None:
    CALLS.clear()
    SEEN.clear()


def test_a_plan_calls_what_the_kernel_prepared_once_per_op(rack: PackManager, build: Build) -> None:
    rack.register_kernel(double_prepared)
    x = np.array([[1.0, -2.0]], np.float32)
    ops = [("double", {"X": "x"}, {"Out": "m"}, {"factor": 3.0}), ("double", {"X": "m"}, {"Out": "y"})]
    program, exe = build({"x": x}, ops), Executor()
    for _ in range(4):
        y = run(exe, program, x)
        assert y.dtype == np.float32 and (y == 6 * x).all()
    assert [(c.op_type, c.attrs["factor"], c.dtypes) for c in SEEN] == [
        ("double", 3.0, {"X": (np.dtype(np.float32),)}),
        ("double", 2.0, {"X": (np.dtype(np.float32),)}),
    ]
    source = exe.prepare(program.desc).block(0).plan(("y",)).source()
    assert "factor=" not in source and "out=v1 if v1.nbytes > " in source, (
        "a ufunc takes `out`, and attributes are bound"
    )


def test_buffers_of_large_arrays_are_used_again_by_what_was_prepared(rack: PackManager, build: Build) -> None:
    rack.register_kernel(double_prepared)
    x = np.ones((200, 200), np.float32)
    program = build({"x": x}, [("double", {"X": "x"}, {"Out": "m"}), ("double", {"X": "m"}, {"Out": "y"})])
    exe = Executor()
    for _ in range(3):
        assert (run(exe, program, x) == 4).all() and (x == 1).all()


@pytest.mark.parametrize("first", [3, 300])
def test_small_inputs_go_to_the_next_kernel_whatever_size_came_first(
    rack: PackManager, build: Build, first: int
) -> None:
    rack.register_kernel(double_large)
    program = build({"x": np.ones(2, np.float32)}, [("double", {"X": "x"}, {"Out": "y"})])
    program.global_block().vars["x"].shape = (-1,)
    for prepared in (True, False):
        exe = Executor(prepared=prepared)
        for size in (first, 3, 99, 100, 300, 3):
            CALLS.clear()
            assert (run(exe, program, np.full(size, 2, np.float32)) == 4).all()
            assert CALLS == ["large"] * (size >= 100), f"{size} elements"


def test_the_three_kernels_of_an_op_share_its_sizes(rack: PackManager, build: Build) -> None:
    rack.register_kernel(double_prepared)
    rack.register_kernel(double_large)
    program = build({"x": np.ones(2, np.float32)}, [("double", {"X": "x"}, {"Out": "y"})])
    program.global_block().vars["x"].shape = (-1,)
    exe = Executor()
    for size in (2, 2, 100, 2, 100):
        assert (run(exe, program, np.ones(size, np.float32)) == 2).all()
    source = exe.prepare(program.desc).block(0).plan(("y",)).source()
    assert "double_large(v0, factor=2.0) if v0.size >= 100 else" in source


def test_an_excluded_library_has_no_part_in_the_choice_by_size(rack: PackManager, build: Build) -> None:
    rack.register_kernel(double_large)
    program = build({"x": np.ones(200, np.float32)}, [("double", {"X": "x"}, {"Out": "y"})])
    exe = Executor(excluded_libraries=["large"])
    for _ in range(3):
        assert (run(exe, program, np.ones(200, np.float32)) == 2).all()
    assert not CALLS
