"""When generated code may serve a run: what ops check of shapes and LoD is checked on every run."""

from __future__ import annotations

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
from oprack.tensor import LoDTensor, Scope
from oprack.types import AttrType

Build = Callable[..., Program]
X = np.array([[1.0, -2.0], [3.0, 4.0], [5.0, 6.0]], np.float32)


class Pair(OpDef, type="pair"):
    """Out = X + Y, row by row and sequence by sequence; numpy would broadcast a single row."""

    X = Input("[n, d].")
    Y = Input("[n, d].")
    Out = Output("[n, d].")

    def infer_shape(ctx: Any) -> None:
        ctx.require(
            ctx.dim("X")[0] == ctx.dim("Y")[0], f"{ctx.dim('X')[0]} and {ctx.dim('Y')[0]} rows; expected as many"
        )
        if ctx.is_runtime:
            counts = [len(level) for slot in ("X", "Y") for level in ctx.lod(slot)]
            ctx.require(len(set(counts)) < 2, f"sequences {counts}; expected as many")
        ctx.set_dim("Out", ctx.dim("X"))


@kernel("pair")
def pair(X: Any, Y: Any) -> Any:
    return X + Y


class Stretch(OpDef, type="stretch"):
    """Out = factor * X."""

    X = Input("Any tensor.")
    Out = Output("As X.")
    factor = Attr(1.0, "Factor.", support_tensor=True)

    def infer_shape(ctx: Any) -> None:
        ctx.set_dim("Out", ctx.dim("X"))


@kernel("stretch")
def stretch(X: Any, *, factor: float) -> Any:
    return X * np.float32(factor)


@pytest.fixture(autouse=True)
def ops(rack: PackManager) -> None:
    for definition in (Pair, Stretch):
        rack.register_op(definition)
    for function in (pair, stretch):
        rack.register_kernel(function)


def executor(program: Program, feed: dict[str, Any], *fetch: str, scope: Scope | None = None) -> Executor:
    """An executor that has run the program often enough to run generated code."""
    exe = Executor()
    for _ in range(3):
        exe.run(program, feed, list(fetch), scope or Scope())
    return exe


@pytest.mark.parametrize("inner", [False, True])
def test_rows_that_have_to_be_as_many_are_compared_on_every_run(build: Build, inner: bool) -> None:
    head = [("double", {"X": "y"}, {"Out": "z"})] if inner else []
    program = build({"x": X, "y": X}, [*head, ("pair", {"X": "x", "Y": "z" if inner else "y"}, {"Out": "out"})])
    exe = executor(program, {"x": X, "y": X}, "out")
    for n in (2, 1, 3, 0):
        exe.run(program, {"x": X[:n], "y": X[:n]}, ["out"], Scope())
    for a, b in ((3, 1), (1, 3), (2, 3), (0, 1)):
        with pytest.raises(InvalidArgumentError, match=rf"op pair: {a} and {b} rows; expected as many"):
            exe.run(program, {"x": X[:a], "y": X[:b]}, ["out"], Scope())


def test_rows_are_compared_with_those_of_parameters(build: Build) -> None:
    program = build({"x": X, "w": X}, [("pair", {"X": "x", "Y": "w"}, {"Out": "out"})])
    program.global_block().vars["w"].persistable = True
    scope = Scope()
    scope.var("w").set(X)
    exe = executor(program, {"x": X}, "out", scope=scope)
    with pytest.raises(InvalidArgumentError, match="op pair: 1 and 3 rows"):
        exe.run(program, {"x": X[:1]}, ["out"], scope)
    scope.var("w").set(X[:1])
    with pytest.raises(InvalidArgumentError, match="op pair: 3 and 1 rows"):
        exe.run(program, {"x": X}, ["out"], scope)


def test_numbers_of_sequences_are_compared_on_every_run(build: Build) -> None:
    def fed(x: list[int], y: list[int]) -> dict[str, Any]:
        return {"x": LoDTensor(X, [x]), "y": LoDTensor(X, [y])}

    program = build(fed([0, 3], [0, 3]), [("pair", {"X": "x", "Y": "y"}, {"Out": "out"})])
    exe = executor(program, fed([0, 1, 3], [0, 2, 3]), "out")
    exe.run(program, fed([0, 1, 2, 3], [0, 1, 1, 3]), ["out"], Scope())
    with pytest.raises(InvalidArgumentError, match=r"op pair: sequences \[3, 2\]; expected as many"):
        exe.run(program, fed([0, 1, 3], [0, 3]), ["out"], Scope())


def test_an_attribute_from_a_variable_is_read_on_every_run(build: Build) -> None:
    program = build({"x": X, "f": np.float32([2])}, [("stretch", {"X": "x"}, {"Out": "y"})])
    program.global_block().ops[0].set_attr("factor", "f", AttrType.VAR)
    exe = Executor()
    for factor in (2, 3, 3, 5):
        (y,) = exe.run(program, {"x": X, "f": np.float32([factor])}, ["y"], Scope())
        assert (y == factor * X).all()
