"""Ops of this pack that take tensor arrays: what they give, and that it is no view of what they were given."""

from __future__ import annotations

import numpy as np
import pytest
from oprack import Executor, data, gradients, layers, program_guard
from oprack.desc import OpDesc
from oprack.layers import LayerHelper
from oprack.program import Program
from oprack.tensor import LoDTensor, LoDTensorArray
from oprack.types import VarType

ARRAY = LoDTensorArray([LoDTensor(np.full((n, 2), n, np.float32)) for n in (1, 2, 3)])


@pytest.mark.parametrize(
    ("op", "slot", "attrs", "expected"),
    [
        ("assign", "X", {}, [1, 2, 3]),
        ("fill_zeros_like", "X", {}, [0, 0, 0]),
        ("slice", "Input", {"axes": [0], "starts": [1], "ends": [-1]}, [2]),
        ("slice", "Input", {"axes": [0], "starts": [1], "ends": [9]}, [2, 3]),
        ("slice", "Input", {"axes": [0], "starts": [3], "ends": [9]}, []),
    ],
)
def test_arrays(op, slot, attrs, expected):
    got = on_array(op, slot, attrs, ARRAY)
    assert [t.array.max() for t in got] == expected
    assert all(not np.shares_memory(a.array, b.array) for a in got for b in ARRAY)


def test_slice_of_an_array_to_one_element():
    attrs = {"axes": [0], "starts": [2], "ends": [3], "decrease_axis": [0]}
    assert np.array_equal(on_array("slice", "Input", attrs, ARRAY), ARRAY[2].array)


def test_assign_of_an_empty_array():
    assert on_array("assign", "X", {}, LoDTensorArray()) == []


def test_gradient_of_a_slice_of_an_array_with_a_gap():
    """Place 0 was never written, so it has no gradient either, and the shape rule asks the other places for dims."""
    main = Program()
    with program_guard(main):
        x = data("x", [3])
        x.stop_gradient = False
        array = layers.create_array("float32")
        layers.array_write(x, layers.fill_constant([1], "int64", 1), array)
        helper = LayerHelper("slice")
        part = helper.create_variable(type=VarType.LOD_TENSOR_ARRAY, dtype="float32")
        helper.append_op("slice", {"Input": array}, {"Out": part}, {"axes": [0], "starts": [1], "ends": [2]})
        y = layers.array_read(part, layers.fill_constant([1], "int64", 0))
        (x_grad,) = gradients(layers.reduce_sum(y * y), [x])
    (got,) = Executor().run(main, {"x": np.float32([1, 2, 3])}, [x_grad])
    assert np.array_equal(got, np.float32([2, 4, 6]))


def on_array(op, slot, attrs, array):
    """Out of `op`, from a tensor array."""
    program = Program()
    block = program.global_block()
    block.create_var("x", type=VarType.LOD_TENSOR_ARRAY, dtype=VarType.FP32)
    block.create_var("out")
    block.append_op(OpDesc(op, {slot: ["x"]}, {"Out": ["out"]}, attrs))
    return Executor().run(program, {"x": array}, ["out"], return_numpy=False)[0]
