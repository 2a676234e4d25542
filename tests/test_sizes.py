"""Sizes that attributes and fed values ask for: shape rules know them before a kernel takes memory; none is below 0."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from oprack.errors import AttributeValueError, InvalidArgumentError
from oprack.packs.manager import default_manager
from oprack.program import Program
from oprack.runtime import Executor
from oprack.runtime.infer import RuntimeInferShapeContext
from oprack.tensor import LoDTensor, Scope
from oprack.types import VarType

HUGE = 2**30
X = np.ones((2, 3), np.float32)
IMAGE = np.ones((1, 1, 4, 4), np.float32)
SEQUENCES = LoDTensor(np.ones((3, 2), np.float32), [[0, 1, 3]])


def _ints(*values: int, dtype: str = "int64") -> np.ndarray:
    return np.array(values, dtype)


# op, inputs, attributes, first output -> the shape that the rule has to know
SIZES: list[tuple[str, dict[str, Any], dict[str, Any], tuple[int, ...]]] = [
    ("fill_constant", {}, {"shape": [HUGE, 4]}, (HUGE, 4)),
    ("fill_constant", {"ShapeTensor": _ints(HUGE, 2)}, {}, (HUGE, 2)),
    ("fill_constant_batch_size_like", {"Input": SEQUENCES}, {"shape": [-1, HUGE]}, (2, HUGE)),
    ("eye", {}, {"num_rows": HUGE, "num_columns": HUGE}, (HUGE, HUGE)),
    ("linspace", {"Start": X[0, :1], "Stop": X[0, :1], "Num": _ints(HUGE)}, {"dtype": 5}, (HUGE,)),
    ("range", {"Start": _ints(0), "End": _ints(2**40), "Step": _ints(1)}, {}, (2**40,)),
    ("one_hot_v2", {"X": _ints(1, 2)}, {"depth": HUGE}, (2, HUGE)),
    ("one_hot_v2", {"X": _ints(1, 2), "depth_tensor": _ints(HUGE, dtype="int32")}, {}, (2, HUGE)),
    ("tile", {"X": X}, {"repeat_times": [HUGE, 2]}, (2 * HUGE, 6)),
    ("expand_v2", {"X": X}, {"shape": [HUGE, 2, 3]}, (HUGE, 2, 3)),
    (
        "nearest_interp_v2",
        {"X": IMAGE, "OutSize": _ints(66, HUGE, dtype="int32")},
        {"interp_method": "nearest"},
        (1, 1, 66, HUGE),
    ),
    ("sequence_pad", {"X": SEQUENCES, "PadValue": X[0, :1]}, {"padded_length": HUGE}, (2, HUGE, 2)),
    ("sequence_pad", {"X": SEQUENCES, "PadValue": X[0, :1]}, {}, (2, 2, 2)),
    ("sequence_mask", {"X": _ints(3, HUGE)}, {"out_dtype": 5}, (2, HUGE)),
    ("sequence_mask", {"X": _ints(3), "MaxLenTensor": _ints(HUGE)}, {"out_dtype": 5}, (1, HUGE)),
    ("segment_pool", {"X": X, "SegmentIds": _ints(0, HUGE)}, {}, (HUGE + 1, 3)),
    ("uniform_random", {}, {"shape": [HUGE, 4]}, (HUGE, 4)),
]


def _infer(op_type: str, inputs: dict[str, Any], attrs: dict[str, Any]) -> tuple[int, ...]:
    """What the shape rule of an op says of the first output at run time."""
    info = default_manager().op_info(op_type)
    values = {s: [v if isinstance(v, LoDTensor) else LoDTensor(v)] for s, v in inputs.items()}
    outputs = {s: [s] for s in info.proto.outputs}
    checked = info.checker.check(attrs)
    context = RuntimeInferShapeContext(info.proto, checked, values, {s: [s] for s in inputs}, outputs)
    info.infer_shape(context)
    return context.dims_set[next(iter(outputs)), 0]


@pytest.mark.parametrize(
    ("op_type", "inputs", "attrs", "shape"), SIZES, ids=[f"{s[0]}{i}" for i, s in enumerate(SIZES)]
)
def test_a_shape_rule_knows_the_size(
    op_type: str, inputs: dict[str, Any], attrs: dict[str, Any], shape: tuple[int, ...]
) -> None:
    if math.prod(shape) < 2**31:
        assert _infer(op_type, inputs, attrs) == shape
        return
    try:  # more than the memory of most machines, which may be refused at once
        assert _infer(op_type, inputs, attrs) == shape
    except InvalidArgumentError as error:
        assert str(list(shape)) in str(error)


def _run(op_type: str, inputs: dict[str, Any], attrs: dict[str, Any]) -> Any:
    program = Program()
    block = program.global_block()
    for name, value in inputs.items():
        tensor = value if isinstance(value, LoDTensor) else LoDTensor(value)
        block.create_var(name, dtype=tensor.dtype, shape=tensor.shape, lod_level=len(tensor.lod))
    slots = default_manager().op_info(op_type).proto.outputs
    outputs = {s: [f"{s}_out"] for s in slots}
    for names in outputs.values():
        block.create_var(names[0], type=VarType.LOD_TENSOR, dtype="float32")
    block.append_op(op_type, {s: [s] for s in inputs}, outputs, attrs)
    return Executor().run(program, dict(inputs), [next(iter(outputs.values()))[0]], Scope())[0]


NEGATIVE: list[tuple[str, dict[str, Any], dict[str, Any], str]] = [
    ("fill_constant", {}, {"shape": [-1, 4]}, "shape is"),
    ("fill_constant_batch_size_like", {"Input": X}, {"shape": [-1, -5]}, "shape is"),
    ("uniform_random_batch_size_like", {"Input": X}, {"shape": [-1, -5]}, "shape is"),
    ("truncated_gaussian_random", {}, {"shape": [-3]}, "shape is"),
    ("eye", {}, {"num_rows": -3}, "num_rows"),
    ("linspace", {"Start": X[0, :1], "Stop": X[0, :1], "Num": _ints(-3)}, {"dtype": 5}, "Num is"),
    ("one_hot_v2", {"X": _ints(1, 2)}, {"depth": -7}, "depth is"),
    ("expand_v2", {"X": X}, {"shape": [-5, 2, 3]}, "shape"),
    ("roll", {"X": X}, {"shifts": [1], "axis": [HUGE]}, "axis is 1073741824"),
    ("roll", {"X": X}, {"shifts": [1], "axis": [0, 1]}, "one shift for each axis"),
    ("assign_value", {}, {"shape": [-2], "dtype": 5, "fp32_values": [1.0]}, "shape is"),
    ("sequence_mask", {"X": _ints(3), "MaxLenTensor": _ints(-2)}, {"out_dtype": 5}, "MaxLenTensor holds -2"),
    ("segment_pool", {"X": X, "SegmentIds": _ints(-4, -3)}, {}, "SegmentIds"),
    ("coalesce_tensor", {"Input": X}, {"dtype": 5, "align_size": HUGE}, "at most 1 MiB"),
    ("uniform_random", {}, {"shape": [4], "diag_num": HUGE}, "diag_num"),
    ("sequence_pad", {"X": SEQUENCES, "PadValue": X[0, :1]}, {"padded_length": 1}, "longest sequence has 2 rows"),
]


@pytest.mark.parametrize(
    ("op_type", "inputs", "attrs", "text"), NEGATIVE, ids=[f"{s[0]}{i}" for i, s in enumerate(NEGATIVE)]
)
def test_a_size_that_makes_no_sense_is_refused(
    op_type: str, inputs: dict[str, Any], attrs: dict[str, Any], text: str
) -> None:
    with pytest.raises((InvalidArgumentError, AttributeValueError), match=text):
        _run(op_type, inputs, attrs)


# gradient ops whose attributes do not fit the gradient that they are given: op, inputs, attributes, the gradient's slot
REGIONS = np.array([[0, 0, 2, 2]], np.float32)
ONE = _ints(1, dtype="int32")
MISFITS: list[tuple[str, dict[str, Any], dict[str, Any], str]] = [
    (
        "conv2d_grad",
        {"Input": IMAGE, "Filter": IMAGE[:, :, :2, :2], "Output@GRAD": IMAGE},
        {"strides": [HUGE, 1]},
        "Output@GRAD",
    ),
    ("conv2d_transpose_grad", {"Input": IMAGE, "Filter": IMAGE[:, :, :2, :2], "Output@GRAD": IMAGE}, {}, "Output@GRAD"),
    (
        "pool2d_grad",
        {"X": IMAGE, "Out": IMAGE, "Out@GRAD": IMAGE},
        {"ksize": [2, 2], "pooling_type": "avg"},
        "Out@GRAD",
    ),
    (
        "max_pool2d_with_index_grad",
        {"X": IMAGE, "Mask": IMAGE.astype("int32"), "Out@GRAD": IMAGE},
        {"ksize": [2, 2]},
        "Mask",
    ),
    ("nearest_interp_v2_grad", {"X": IMAGE, "Out@GRAD": IMAGE}, {"out_h": 2**20, "out_w": 2}, "Out@GRAD"),
    (
        "unfold_grad",
        {"X": IMAGE, "Y@GRAD": X},
        {"kernel_sizes": [2, 2], "strides": [1, 1], "paddings": [0] * 4, "dilations": [1, 1]},
        "Y@GRAD",
    ),
    ("im2sequence_grad", {"X": IMAGE, "Out@GRAD": X}, {"kernels": [2, 2]}, "Out@GRAD"),
    (
        "roi_align_grad",
        {"X": IMAGE, "ROIs": REGIONS, "RoisNum": ONE, "Out@GRAD": IMAGE},
        {"pooled_height": 2**20},
        "Out@GRAD",
    ),
]


@pytest.mark.parametrize(("op_type", "inputs", "attrs", "slot"), MISFITS, ids=[m[0] for m in MISFITS])
def test_a_gradient_that_the_attributes_do_not_fit_is_refused(
    op_type: str, inputs: dict[str, Any], attrs: dict[str, Any], slot: str
) -> None:
    with pytest.raises(InvalidArgumentError, match=f"{slot} has shape .*what the forward op gives"):
        _run(op_type, inputs, attrs)


def test_regions_beyond_all_reason_are_refused() -> None:
    inputs = {"X": IMAGE, "ROIs": REGIONS, "RoisNum": ONE}
    with pytest.raises(InvalidArgumentError, match="region 0 takes 65536 x 65536 samples"):
        _run("roi_align", inputs, {"sampling_ratio": 2**16})
    inputs["ROIs"] = np.array([[0, 0, 1e30, 1e30]], np.float32)
    with pytest.raises(InvalidArgumentError, match="region 0 takes"):
        _run("roi_align", inputs, {})


def test_windows_behind_the_array_take_no_memory() -> None:
    """In ceil_mode the last window may start behind the array; how far does not matter."""
    attrs = {"ksize": [2, 2], "strides": [2**30, 2**30], "pooling_type": "max", "ceil_mode": True}
    out = _run("pool2d", {"X": np.arange(16, dtype=np.float32).reshape(1, 1, 4, 4)}, attrs)
    assert out.shape == (1, 1, 2, 2) and out[0, 0, 0, 0] == 5
    assert (out.reshape(-1)[1:] == np.finfo(np.float32).min).all()
