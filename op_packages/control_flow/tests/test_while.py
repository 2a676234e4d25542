"""while and while_grad, and their blocks."""

from __future__ import annotations

import numpy as np
import pytest
from oprack.errors import OprackError
from oprack.types import VarType

X = np.array([[1.0, -2.0]], np.float32)


def counted_loop(builder, rounds, with_grad=False, is_test=False):
    """h = 2 h + w, `rounds` times; with_grad adds the program that differentiates it."""
    b = builder()
    b.var("h0", "w", "h@GRAD")
    b.op("assign", X="h0", Out="h")
    b.constant("i", 0, VarType.INT64)
    b.constant("n", rounds, VarType.INT64)
    b.op("less_than", X="i", Y="n", Out="go")
    b.var("scopes", kind=VarType.STEP_SCOPES)
    with b.inside() as body:
        b.op("scale", X="h", Out="twice", scale=2.0)
        b.op("elementwise_add", X="twice", Y="w", Out="next")
        b.op("assign", X="next", Out="h")
        b.op("increment", X="i", Out="i", step=1.0)
        b.op("less_than", X="i", Y="n", Out="go")
    reads = ["h", "w", "i", "n"]
    b.op("while", X=reads, Condition="go", Out=["h", "i", "go"], StepScopes="scopes", sub_block=body, is_test=is_test)
    if with_grad:
        with b.inside() as grad:
            b.var("next@GRAD", "twice@GRAD", "h@GRAD", "w@GRAD")
            b.op("assign", X="h@GRAD", Out="next@GRAD")
            b.op("assign", X="next@GRAD", Out="w@GRAD")
            b.op("assign", X="next@GRAD", Out="twice@GRAD")
            b.op("scale", X="twice@GRAD", Out="h@GRAD", scale=2.0)
        b.op(
            "while_grad",
            X=reads,
            Out=["h", "i", "go"],
            Out_grad=["h@GRAD"],
            StepScopes="scopes",
            X_grad=["h@GRAD", "w@GRAD", "@EMPTY@", "@EMPTY@"],
            sub_block=grad,
            original_output_grad=["h@GRAD"],
        )
    return b


@pytest.mark.parametrize("prepared", [True, False])
@pytest.mark.parametrize("is_test", [True, False])
@pytest.mark.parametrize("rounds", [0, 1, 5])
def test_while(builder, rounds, is_test, prepared):
    h, i = counted_loop(builder, rounds, is_test=is_test).run({"h0": X, "w": X}, ["h", "i"], prepared=prepared)
    assert np.array_equal(h.array, X * (2 ** (rounds + 1) - 1))
    assert i.array.tolist() == [rounds]


@pytest.mark.parametrize("rounds", [0, 1, 3])
def test_while_grad(builder, rounds):
    b = counted_loop(builder, rounds, with_grad=True)
    cotangent = np.array([[1.0, 10.0]], np.float32)
    grads = b.run({"h0": X, "w": X, "h@GRAD": cotangent}, ["h@GRAD", "w@GRAD"])
    assert np.array_equal(grads[0].array, cotangent * 2**rounds)
    assert np.array_equal(grads[1].array, cotangent * (2**rounds - 1))


def test_while_grad_of_a_result_that_no_round_reads(builder):
    """last = 2 w in every round: only the last round counts."""
    b = builder()
    b.var("w", "last@GRAD")
    b.var("scopes", kind=VarType.STEP_SCOPES)
    b.constant("last", 0)
    b.constant("i", 0)
    b.constant("n", 3)
    b.op("less_than", X="i", Y="n", Out="go")
    with b.inside() as body:
        b.op("scale", X="w", Out="twice", scale=2.0)
        b.op("assign", X="twice", Out="last")
        b.op("increment", X="i", Out="i", step=1.0)
        b.op("less_than", X="i", Y="n", Out="go")
    slots = {"X": ["w", "i", "n"], "Out": ["last", "i", "go"], "StepScopes": "scopes"}
    b.op("while", **slots, Condition="go", sub_block=body)
    with b.inside() as grad:
        b.var("twice@GRAD", "w@GRAD")
        b.op("assign", X="last@GRAD", Out="twice@GRAD")
        b.op("scale", X="twice@GRAD", Out="w@GRAD", scale=2.0)
    b.op("while_grad", **slots, Out_grad=["last@GRAD"], X_grad=["w@GRAD", "@EMPTY@", "@EMPTY@"], sub_block=grad)
    last, w_grad = b.run({"w": X, "last@GRAD": np.ones_like(X)}, ["last", "w@GRAD"])
    assert np.array_equal(last.array, 2 * X)
    assert np.array_equal(w_grad.array, np.full_like(X, 2))


def test_nested_while(builder):
    """n rounds of n rounds; the inner counter starts anew each time."""
    b = builder()
    b.constant("total", 0)
    b.constant("i", 0)
    b.constant("n", 3)
    b.op("less_than", X="i", Y="n", Out="go")
    with b.inside() as outer:
        b.constant("j", 0)
        b.op("less_than", X="j", Y="n", Out="inner_go")
        with b.inside() as inner:
            b.op("increment", X="total", Out="total", step=1.0)
            b.op("increment", X="j", Out="j", step=1.0)
            b.op("less_than", X="j", Y="n", Out="inner_go")
        b.op("while", X=["total", "j", "n"], Condition="inner_go", Out=["total", "j", "inner_go"], sub_block=inner)
        b.op("increment", X="i", Out="i", step=1.0)
        b.op("less_than", X="i", Y="n", Out="go")
    b.op("while", X=["total", "i", "n"], Condition="go", Out=["total", "i", "go"], sub_block=outer)
    assert b.run({}, ["total"])[0].array.tolist() == [9]


def test_a_condition_of_two_elements_is_refused(builder):
    b = builder()
    b.var("go")
    with b.inside() as body:
        pass
    b.op("while", X=[], Condition="go", Out=["go"], sub_block=body)
    with pytest.raises(OprackError, match=r"Condition is a tensor of shape \[2\]; expected a tensor of one"):
        b.run({"go": np.array([True, False])}, ["go"])
