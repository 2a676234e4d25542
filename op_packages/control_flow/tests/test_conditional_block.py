"""conditional_block, conditional_block_infer and their gradient."""

from __future__ import annotations

import numpy as np
import pytest
from oprack.types import VarType

X = np.array([[1.0, -2.0]], np.float32)


def branch(builder, kind="conditional_block"):
    """y = 3 x when p, else y stays x; and its gradient."""
    b = builder()
    b.var("x", "p", "y@GRAD")
    b.var("scope", kind=VarType.STEP_SCOPES)
    b.op("assign", X="x", Out="y")
    with b.inside() as then:
        b.op("scale", X="x", Out="tripled", scale=3.0)
        b.op("assign", X="tripled", Out="y")
    b.op(kind, Cond="p", Input=["x"], Out=["y"], Scope="scope", sub_block=then, is_scalar_condition=True)
    if kind == "conditional_block":
        with b.inside() as grad:
            b.var("tripled@GRAD", "x@GRAD")
            b.op("assign", X="y@GRAD", Out="tripled@GRAD")
            b.op("scale", X="tripled@GRAD", Out="x@GRAD", scale=3.0)
        b.op(
            "conditional_block_grad",
            Cond="p",
            Input=["x"],
            Out=["y"],
            Out_grad=["y@GRAD"],
            Scope="scope",
            Input_grad=["x@GRAD"],
            sub_block=grad,
            is_scalar_condition=True,
        )
    return b


@pytest.mark.parametrize(("p", "factor", "grad"), [(True, 3, 3), (False, 1, 0)])
def test_conditional_block(builder, p, factor, grad):
    feed = {"x": X, "p": np.array([p]), "y@GRAD": np.ones_like(X)}
    y, x_grad = branch(builder).run(feed, ["y", "x@GRAD"])
    assert np.array_equal(y.array, factor * X)
    assert np.array_equal(x_grad.array, np.full_like(X, grad))


@pytest.mark.parametrize(("p", "factor"), [(True, 3), (False, 1)])
def test_conditional_block_infer(builder, p, factor):
    (y,) = branch(builder, "conditional_block_infer").run({"x": X, "p": np.array([p])}, ["y"])
    assert np.array_equal(y.array, factor * X)


@pytest.mark.parametrize(("rows", "runs"), [(2, True), (0, False)])
def test_without_a_scalar_condition_an_empty_input_decides(builder, rows, runs):
    b = builder()
    b.var("x", "p")
    b.constant("y", -1)
    with b.inside() as then:
        b.constant("seven", 7)
        b.op("assign", X="seven", Out="y")
    b.op("conditional_block", Cond="p", Input=["x"], Out=["y"], sub_block=then)
    (y,) = b.run({"x": np.zeros((rows, 2), np.float32), "p": np.array([False])}, ["y"])
    assert y.array.tolist() == [7 if runs else -1]
