"""select_input and select_output."""

from __future__ import annotations

import numpy as np
import pytest
from oprack.errors import OprackError
from oprack.types import VarType


@pytest.mark.parametrize(
    ("op", "inputs", "outputs"), [("select_input", ["a", "b"], "out"), ("select_output", "a", ["out"])]
)
def test_an_array_that_nothing_was_written_to_is_empty_in_a_selection(builder, op, inputs, outputs):
    b = builder()
    for name in ("a", "b", "out"):
        b.var(name, kind=VarType.LOD_TENSOR_ARRAY)
    b.constant("mask", 0, VarType.INT32)
    b.op(op, X=inputs, Mask="mask", Out=outputs)
    b.op("lod_array_length", X="out", Out="length")
    b.op("write_to_array", X="mask", I="length", Out="out")  # the array is its own: the one selected stays empty
    b.op("lod_array_length", X="a", Out="selected")
    length, out, selected = b.run({}, ["length", "out", "selected"])
    assert (length.array.tolist(), [t.array.tolist() for t in out], selected.array.tolist()) == ([0], [[0]], [0])


def test_a_tensor_that_nothing_was_written_to_is_refused_by_a_selection(builder):
    b = builder()
    b.var("a")
    b.constant("mask", 0, VarType.INT32)
    b.op("select_input", X=["a"], Mask="mask", Out="out")
    with pytest.raises(OprackError, match="variable 'a' holds no value"):
        b.run({}, ["out"])


@pytest.mark.parametrize("mask", [0, 1])
def test_select(builder, mask):
    b = builder()
    b.var("x", "m")
    b.constant("a", 0)
    b.constant("b", 0)
    b.op("select_output", X="x", Mask="m", Out=["a", "b"])
    b.op("select_input", X=["a", "b"], Mask="m", Out="y")
    feed = {"x": np.array([9.0], np.float32), "m": np.array([mask], np.int32)}
    a, c, y = (t.array.item() for t in b.run(feed, ["a", "b", "y"]))
    assert [a, c] == [9 * (1 - mask), 9 * mask] and y == 9


def test_select_refuses_a_branch_that_is_not_there(builder):
    b = builder()
    b.var("x", "m")
    b.op("select_input", X=["x"], Mask="m", Out="y")
    with pytest.raises(OprackError, match="0 <= Mask < 1"):
        b.run({"x": np.zeros(1, np.float32), "m": np.array([1], np.int32)}, ["y"])
