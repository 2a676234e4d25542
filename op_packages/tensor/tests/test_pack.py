"""The tensor pack against the conformance suite, and what the case files leave out."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from oprack import Executor
from oprack.desc import OpDesc
from oprack.program import Program
from oprack.tensor import LoDTensor, LoDTensorArray, SelectedRows
from oprack.testing import Conformance, Limitation, OpCase
from oprack.types import VarType

F = np.float32
X234 = np.arange(24, dtype=F).reshape(2, 3, 4)
EMPTY = np.zeros((0, 3), F)
ROWS = SelectedRows([4, 1], np.ones((2, 3), F), 6)
ARRAY = LoDTensorArray([LoDTensor(np.full((n, 2), n, F)) for n in (1, 2, 3)])
PLACES = np.array([[0, 0, 1], [2, 2, 2]], np.int64)
VALUES = np.array([[5.0, 2.0, 3.0], [0.5, 7.0, -4.0]], F)
TARGET = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], F)


def put_record(reduce, include_self, expected):
    return OpCase(
        "put_along_axis",
        {"Input": TARGET, "Index": PLACES, "Value": VALUES},
        {"Axis": 1, "Reduce": reduce, "Include_self": include_self},
        {"Result": np.array(expected, F)},
        grads=["Input", "Value"],
        name=f"{reduce}-{include_self}",
    )


RECORDS = [
    OpCase("assign", {"X": ROWS}, outputs={"Out": ROWS}, name="rows"),
    OpCase("fill_zeros_like", {"X": EMPTY}, outputs={"Out": EMPTY}, name="empty"),
    OpCase("shape", {"Input": ROWS}, outputs={"Out": np.array([2, 3], np.int32)}, name="rows"),
    OpCase("shape", {"Input": EMPTY}, outputs={"Out": np.array([0, 3], np.int32)}, name="empty"),
    OpCase("concat", {"X": [EMPTY, TARGET, EMPTY]}, {"axis": 0}, {"Out": TARGET}, name="empty"),
    OpCase("gather", {"X": TARGET, "Index": np.zeros(0, np.int64)}, outputs={"Out": EMPTY}, name="empty"),
    OpCase(
        "where_index", {"Condition": np.zeros((2, 3), bool)}, outputs={"Out": np.zeros((0, 2), np.int64)}, name="none"
    ),
    OpCase("squeeze", {"X": X234[:, :1]}, {"axes": [1]}, {"Out": X234[:, 0]}, grads=["X"]),
    OpCase("unsqueeze", {"X": X234}, {"axes": [-1, 0]}, {"Out": X234[None, ..., None]}, grads=["X"]),
    OpCase("top_k", {"X": TARGET}, {"k": 2}, {"Out": TARGET[:, :0:-1]}, grads=["X"]),
    OpCase("argsort", {"X": TARGET}, {"descending": True}, {"Out": TARGET[:, ::-1]}, grads=["X"]),
    OpCase(
        "gather_nd",
        {"X": TARGET, "Index": np.array([[1, 0], [1, 0], [0, 2]])},
        outputs={"Out": np.array([4, 4, 3], F)},
        grads=["X"],
    ),
    OpCase("gather", {"X": X234, "Index": np.array([2, 0, 2])}, {"axis": 1}, {"Out": X234[:, [2, 0, 2]]}, grads=["X"]),
    OpCase("masked_select", {"X": TARGET, "Mask": TARGET > 2}, outputs={"Y": TARGET[TARGET > 2]}, grads=["X"]),
    OpCase("meshgrid", {"X": [TARGET[0], TARGET[1, :2]]}, outputs={"Out": [None, None]}, grads=["X"]),
    put_record("assign", True, [[2, 3, 3], [4, 5, -4]]),
    put_record("add", True, [[8, 5, 3], [4, 5, 9.5]]),
    put_record("add", False, [[7, 3, 3], [4, 5, 3.5]]),
    put_record("mul", True, [[10, 6, 3], [4, 5, -84]]),
    put_record("mean", True, [[8 / 3, 2.5, 3], [4, 5, 9.5 / 4]]),
    put_record("mean", False, [[3.5, 3, 3], [4, 5, 3.5 / 3]]),
    put_record("amax", True, [[5, 3, 3], [4, 5, 7]]),
    put_record("amin", False, [[2, 3, 3], [4, 5, -4]]),
]


class TestTensor(Conformance):
    pack = "tensor"
    case_files = Path(__file__).parents[3] / "tests" / "data" / "cases"
    cases = RECORDS
    limitations = (
        Limitation("concat.0003", "the case stores the empty gradient of an empty input as float64", ("gradient",)),
        Limitation("more.top_k.*", "Paddle's gradient of top_k has no LoD", ("gradient",)),
    )


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


def on_array(op, slot, attrs, array):
    """Out of `op`, from a tensor array."""
    program = Program()
    block = program.global_block()
    block.create_var("x", type=VarType.LOD_TENSOR_ARRAY, dtype=VarType.FP32)
    block.create_var("out")
    block.append_op(OpDesc(op, {slot: ["x"]}, {"Out": ["out"]}, attrs))
    return Executor().run(program, {"x": array}, ["out"], return_numpy=False)[0]
