"""Generated code asks the ops' shape rules about every combination of shapes, once where shapes are all that counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from oprack.errors import InvalidArgumentError
from oprack.kernel import kernel
from oprack.op import Attr, Input, OpDef, Output
from oprack.packs.manager import PackManager
from oprack.program import Program
from oprack.runtime import Executor
from oprack.tensor import LoDTensorArray, Scope
from oprack.types import VarType

Build = Callable[..., Program]
X = np.arange(6, dtype=np.float32).reshape(3, 2)
ASKED: Counter[str] = Counter()


class Shift(OpDef, type="shift"):
    """Out = X + Bias, a row of as many elements as X has columns."""

    X = Input("[n, d].")
    Bias = Input("[d].")
    Out = Output("[n, d].")

    def infer_shape(ctx: Any) -> None:
        if ctx.is_runtime:
            ASKED["shift"] += 1
        x, b = ctx.dim("X"), ctx.dim("Bias")
        ctx.require(len(b) == 1 and b[0] in (-1, x[1]), f"Bias has shape {list(b)}; expected [{x[1]}]")
        ctx.set_dim("Out", x)


@kernel("shift")
def shift(X: Any, Bias: Any) -> Any:
    return X + Bias


class Positive(OpDef, type="positive"):
    """Out = the elements of X above 0: how many, only the kernel knows."""

    X = Input("Any tensor.")
    Out = Output("[m].")

    def infer_shape(ctx: Any) -> None:
        ctx.set_dim("Out", (-1,))


@kernel("positive")
def positive(X: Any) -> Any:
    return X[X > 0]


class Cut(OpDef, type="cut"):
    """Out = the first `n` elements of X; the tensor N, where it is given, overrides the attribute."""

    X = Input("[d].")
    N = Input("One integer.", dispensable=True)
    Out = Output("[n].")
    n = Attr(1, "How many.")

    def infer_shape(ctx: Any) -> None:
        if ctx.is_runtime:
            ASKED["cut"] += 1
        n = ctx.attr("n")
        if ctx.has_input("N"):
            n = int(ctx.value("N").item()) if ctx.is_runtime else -1
        ctx.require(ctx.dim("X")[0] in (-1, *range(n, 99)), f"n is {n}, but X has {ctx.dim('X')[0]} elements")
        ctx.set_dim("Out", (n,))

    def expected_kernel_type(ctx: Any) -> Any:
        return ctx.kernel_type(dtype=ctx.dtype("X"))


@kernel("cut")
def cut(X: Any, N: Any = None, *, n: int) -> Any:
    return X[: n if N is None else int(N.item())].copy()


class Total(OpDef, type="total"):
    """Out = sum of the elements of an array of tensors, which have one shape."""

    X = Input("Array of tensors.")
    Out = Output("Of their shape.")

    def infer_shape(ctx: Any) -> None:
        if ctx.is_runtime:
            ctx.require(len(ctx.dim("X")) == 1, f"its tensors have shape {list(ctx.dim('X'))}; expected rank 1")
        ctx.set_dim("Out", ctx.dim("X"))

    def infer_var_type(ctx: Any) -> None:
        ctx.set_dtype("Out", "float32")


@kernel("total")
def total(X: LoDTensorArray) -> Any:
    return sum(t.array for t in X)


@pytest.fixture(autouse=True)
def ops(rack: PackManager) -> None:
    ASKED.clear()
    for definition in (Shift, Positive, Cut, Total):
        rack.register_op(definition)
    for function in (shift, positive, cut, total):
        rack.register_kernel(function)


def refused(program: Program, feeds: dict[str, Any], fetch: str, exe: Executor) -> str:
    """What the error says; the same as that of the reference path, class and text."""
    texts = []
    for executor in (exe, Executor(prepared=False)):
        with pytest.raises(InvalidArgumentError) as error:
            executor.run(program, feeds, [fetch], Scope())
        texts.append((type(error.value), str(error.value)))
    assert texts[0] == texts[1]
    return texts[0][1]


@pytest.mark.parametrize("hidden", [False, True])
def test_the_first_dim_of_one_input_is_compared_with_another_dim_of_another(build: Build, hidden: bool) -> None:
    head = [("double", {"X": "b"}, {"Out": "bias"})] if hidden else []
    program = build(
        {"x": X, "b": X[0]}, [*head, ("shift", {"X": "x", "Bias": "bias" if hidden else "b"}, {"Out": "y"})]
    )
    exe = Executor()
    exe.run(program, {"x": X, "b": X[0]}, ["y"], Scope())
    for n in (1, 3, 1, 4):
        bias = np.ones(n, np.float32)
        assert f"op shift: Bias has shape [{n}]; expected [2]" in refused(program, {"x": X, "b": bias}, "y", exe)
    for rows in (5, 1, 0):  # and goes on to take what is right
        (y,) = exe.run(program, {"x": np.ones((rows, 2), np.float32), "b": X[1]}, ["y"], Scope())
        assert (y == np.ones((rows, 2)) + X[1] * (2 if hidden else 1)).all()


def test_a_combination_of_shapes_is_asked_about_once(build: Build) -> None:
    program = build({"x": X, "b": X[0]}, [("shift", {"X": "x", "Bias": "b"}, {"Out": "y"})])
    exe = Executor()
    for _ in range(3):
        for rows in (1, 2, 3, 4):
            exe.run(program, {"x": np.ones((rows, 2), np.float32), "b": X[0]}, ["y"], Scope())
    assert ASKED["shift"] == 4
    source = exe.prepare(program.desc).block(0).plan(["y"]).source()
    assert "seen" not in source and "shapes" not in source, "code for shapes that were met asks for nothing"


def test_what_follows_a_shape_that_only_the_kernel_knows_is_asked_on_every_run(build: Build) -> None:
    program = build(
        {"x": X[:, 0]}, [("positive", {"X": "x"}, {"Out": "p"}), ("cut", {"X": "p"}, {"Out": "y"}, {"n": 2})]
    )
    exe = Executor()
    for above in (5, 4, 5, 4, 5, 4):
        x = np.where(np.arange(6) < above, 1, -1).astype(np.float32)
        assert exe.run(program, {"x": x}, ["y"], Scope())[0].tolist() == [1, 1]
    assert ASKED["cut"] == 3, "by the reference path for 5, by generated code for 4 and for 5"
    text = refused(program, {"x": np.float32([1, -1, -1, -1, -1, -1])}, "y", exe)
    assert "op cut: n is 2, but X has 1 elements" in text


def test_a_rule_that_reads_values_is_asked_on_every_run(build: Build) -> None:
    program = build(
        {"x": X[:, 0], "n": np.array([2])},
        [("cut", {"X": "x", "N": "n"}, {"Out": "c"}), ("cut", {"X": "c"}, {"Out": "y"}, {"n": 2})],
    )
    exe = Executor()
    for n in (2, 3, 2):
        assert exe.run(program, {"x": X[:, 0], "n": np.array([n])}, ["y"], Scope())[0].tolist() == [0, 2]
    assert "n is 7, but X has 3 elements" in refused(program, {"x": X[:, 0], "n": np.array([7])}, "y", exe)
    assert "n is 2, but X has 1 elements" in refused(program, {"x": X[:, 0], "n": np.array([1])}, "y", exe)


def test_elements_of_an_array_are_looked_at_on_every_run(build: Build) -> None:
    program = build({"a": X[0]}, [("total", {"X": "a"}, {"Out": "y"})])
    program.global_block().vars["a"].type = VarType.LOD_TENSOR_ARRAY
    exe = Executor()
    for k in (1, 2, 3):
        assert exe.run(program, {"a": [X[0]] * k}, ["y"], Scope())[0].tolist() == [0, k]
    assert "its tensors have shape [3, 2]; expected rank 1" in refused(program, {"a": [X]}, "y", exe)


def test_a_rule_that_becomes_less_sure_is_asked_again(build: Build, rack: PackManager) -> None:
    class Moody(OpDef, type="moody"):
        """Out = X, or its positive elements when X has five."""

        X = Input("[d].")
        Out = Output("[d] or fewer.")

        def infer_shape(ctx: Any) -> None:
            ctx.set_dim("Out", (-1,) if ctx.dim("X")[0] in (-1, 5) else ctx.dim("X"))

    @kernel("moody")
    def moody(X: Any) -> Any:
        return X[X > 0] if len(X) == 5 else X * 1

    rack.register_op(Moody)
    rack.register_kernel(moody)
    program = build({"x": X[:, 0]}, [("moody", {"X": "x"}, {"Out": "m"}), ("cut", {"X": "m"}, {"Out": "y"}, {"n": 2})])
    exe = Executor()
    for x in ([1, 2, 3], [1, 2, 3, 4, 5], [1, 2, -3, -4, -5]):
        assert exe.run(program, {"x": np.float32(x)}, ["y"], Scope())[0].tolist() == [1, 2]
    assert "n is 2, but X has 1 elements" in refused(program, {"x": np.float32([1, -2, -3, -4, -5])}, "y", exe)
