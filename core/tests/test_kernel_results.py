"""What a kernel returns and writes is checked on its first call: in plans, on the reference path, in eager calls."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import oprack
import pytest
from oprack.errors import InputOverwrittenError, KernelResultError, OprackError
from oprack.kernel import kernel
from oprack.op import Input, OpDef, Output
from oprack.packs.manager import PackManager
from oprack.program import Program
from oprack.runtime import Checks, Executor
from oprack.tensor import LoDTensor, Scope

Build = Callable[..., Program]
X = np.array([[1.0, -2.0], [3.0, 4.0]], np.float32)


def missing(X: Any) -> Any:
    return None


def too_short(X: Any) -> Any:
    return X[:1]


def too_wide(X: Any) -> Any:
    return X.astype(np.float64)


def overwriting(X: Any) -> Any:
    X *= 3
    return X.copy()


FAULTS: list[tuple[Any, type[OprackError], str]] = [
    (missing, KernelResultError, r"returned None for output Out"),
    (too_short, KernelResultError, r"returned shape \[1, 2\] for output Out .* promised \[2, 2\]"),
    (too_wide, KernelResultError, r"returned float64 for output Out .* promised float32; cast in the kernel"),
    (overwriting, InputOverwrittenError, r"wrote to input X .* does not declare in place"),
]


def run_in(how: str, build: Build, x: np.ndarray) -> Any:
    if how == "eager":
        return oprack.functional.double(oprack.to_tensor(x)).numpy()
    program = build({"x": x}, [("double", {"X": "x"}, {"Out": "y"})])
    return Executor(prepared=how == "plan").run(program, {"x": x}, ["y"], Scope())[0]


@pytest.mark.parametrize("how", ["plan", "reference", "eager"])
@pytest.mark.parametrize(("fault", "error", "text"), FAULTS, ids=lambda v: getattr(v, "__name__", None))
def test_a_faulty_kernel_is_blamed_on_its_first_call(
    build: Build, rack: PackManager, how: str, fault: Any, error: type[OprackError], text: str
) -> None:
    rack.register_kernel(kernel("double", priority=1)(fault))
    with pytest.raises(
        error, match=rf"kernel \S*{fault.__name__} of this process \(.*test_kernel_results.py:\d+\).*{text}"
    ):
        run_in(how, build, X.copy())


def test_a_shape_that_comes_later_on_the_reference_path_is_checked_too(build: Build, rack: PackManager) -> None:
    @kernel("double", priority=1)
    def wide_only(X: Any) -> Any:
        return X[:, :2] * 2

    rack.register_kernel(wide_only)
    wide = np.ones((2, 3), np.float32)
    program = build({"x": wide}, [("double", {"X": "x"}, {"Out": "y"})])
    program.global_block().vars["x"].shape = (-1, -1)
    exe, scope = Executor(checks=Checks(nan_inf=True)), Scope()  # the same operators, one by one
    np.testing.assert_array_equal(exe.run(program, {"x": X}, ["y"], scope)[0], X * 2)
    with pytest.raises(KernelResultError, match=r"wide_only .* shape \[2, 2\] .* promised \[2, 3\]"):
        exe.run(program, {"x": wide}, ["y"], scope)


class Slogdet(OpDef, type="slogdet_of"):
    """Sign and logarithm of a determinant."""

    X = Input("[n, n].")
    Sign = Output("[].")
    Log = Output("[].")

    def infer_shape(ctx: Any) -> None:
        ctx.set_dim("Sign", ())
        ctx.set_dim("Log", ())


@pytest.mark.parametrize("how", ["plan", "reference", "eager"])
def test_a_kernel_returns_a_named_tuple_as_numpys_linalg_does(build: Build, rack: PackManager, how: str) -> None:
    rack.register_op(Slogdet)
    rack.register_kernel(kernel("slogdet_of")(lambda X: np.linalg.slogdet(X)))
    if how == "eager":
        found = [t.numpy() for t in oprack.functional.slogdet_of(oprack.to_tensor(X))]
    else:
        program = build({"x": X}, [("slogdet_of", {"X": "x"}, {"Sign": "s", "Log": "l"})])
        found = Executor(prepared=how == "plan").run(program, {"x": X}, ["s", "l"], Scope())
    np.testing.assert_allclose(found, [1.0, np.log(10.0)], rtol=1e-6)


def test_a_write_into_a_large_input_is_found_by_sample(build: Build, rack: PackManager) -> None:
    @kernel("join", priority=1)
    def sorting(X: list[Any]) -> Any:
        X[0].sort(axis=0)
        return np.concatenate(X)

    rack.register_kernel(sorting)
    large = np.random.default_rng(0).standard_normal((1 << 19, 2)).astype(np.float32)
    program = build({"x": large}, [("join", {"X": ["x"]}, {"Out": "y"})])
    with pytest.raises(InputOverwrittenError, match=r"sorting .* wrote to input X"):
        Executor().run(program, {"x": large.copy()}, ["y"], Scope())


def test_the_users_tensor_keeps_its_numbers_where_a_kernel_may_write(build: Build, rack: PackManager) -> None:
    """In place as declared: `out` is the input's buffer in a program, and the caller's own memory stays his."""

    @kernel("double", priority=1)
    def filling(X: Any, *, factor: float, out: Any) -> Any:
        return np.multiply(X, np.float32(factor), out=out)

    rack.register_kernel(filling)
    x = X.copy()
    program = build({"x": x}, [("double", {"X": "x"}, {"Out": "y"}), ("double", {"X": "y"}, {"Out": "y"})])
    (y,) = Executor().run(program, {"x": LoDTensor(x)}, ["y"], Scope())
    np.testing.assert_array_equal(y, X * 4)
    np.testing.assert_array_equal(x, X)


def test_the_second_call_is_not_watched(build: Build, rack: PackManager) -> None:
    """A steady plan runs the kernel alone, so what it costs is paid once."""
    from oprack.runtime import kernel_operator

    seen = []
    program = build({"x": X}, [("double", {"X": "x"}, {"Out": "y"})])
    exe, scope = Executor(), Scope()
    original = kernel_operator.check_results
    kernel_operator.check_results = lambda *a, **k: (seen.append(1), original(*a, **k))  # type: ignore[assignment,misc]
    try:
        for _ in range(3):
            exe.run(program, {"x": X}, ["y"], scope)
    finally:
        kernel_operator.check_results = original
    assert len(seen) == 1
