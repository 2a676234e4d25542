"""What the case files do not say: precedence of inputs, sparse tables, second gradients by their makers, messages."""

from __future__ import annotations

import numpy as np
import pytest
from oprack import Executor, LoDTensor, Program, SelectedRows
from oprack.desc import OpDesc
from oprack.testing import OpCase
from oprack.types import AttrType


def _numbers(*shape):
    return np.random.default_rng(sum(shape)).standard_normal(shape)


TABLE = SelectedRows([4, 0, 2], np.array([[4.0, 4.5], [0.0, 0.5], [2.0, 2.5]]), 6)
LINE = np.array([0.0, 1.0, 4.0, 9.0]).reshape(1, 1, 1, 4)
TWO, THREE, SEVEN = (np.array([n], "int32") for n in (2, 3, 7))

RECORDS = [
    OpCase(
        "lookup_table",
        {"W": TABLE, "Ids": LoDTensor(np.array([[2], [0], [4], [2]]), [[0, 1, 1, 4]])},
        {"padding_idx": 0},
        {"Out": LoDTensor(np.array([[2.0, 2.5], [0, 0], [4.0, 4.5], [2.0, 2.5]]), [[0, 1, 1, 4]])},
        name="rows of SelectedRows",
    ),
    OpCase(
        "lookup_table",
        {"W": TABLE, "Ids": np.array([[5], [4]])},
        {"is_test": True},
        {"Out": np.array([[0.0, 0.0], [4.0, 4.5]])},
        name="missing row in a test",
    ),
    OpCase(
        "lookup_table_v2",
        {"W": TABLE, "Ids": np.array([[5, 0], [4, 4]], "int32")},
        {},
        {"Out": np.array([[[0.0, 0.0], [0.0, 0.5]], [[4.0, 4.5], [4.0, 4.5]]])},
        name="rows of SelectedRows",
    ),
    OpCase(
        "lookup_table_v2",
        {"W": _numbers(3, 2), "Ids": np.array([7, 7])},
        {"padding_idx": 7},
        {"Out": np.zeros((2, 2))},
        name="padding_idx behind the table",
    ),
    OpCase(
        "bilinear_interp_v2",
        {"X": LINE, "OutSize": np.array([1, 7], "int32")},
        {"out_h": 3, "out_w": 3},
        {"Out": np.array([0, 0.5, 1, 2.5, 4, 6.5, 9]).reshape(1, 1, 1, 7)},
        name="OutSize before out_w",
    ),
    OpCase(
        "bilinear_interp_v2",
        {"X": LINE, "OutSize": np.array([2, 3], "int32"), "SizeTensor": [np.array([1], "int32"), SEVEN]},
        {"scale": [1.0, 0.5]},
        {"Out": np.array([0, 0.5, 1, 2.5, 4, 6.5, 9]).reshape(1, 1, 1, 7)},
        name="SizeTensor before all",
    ),
    OpCase(
        "nearest_interp",
        {"X": LINE, "Scale": np.array([2.0], "float32")},
        {"scale": 3.0, "align_corners": False, "interp_method": "nearest"},
        {"Out": np.repeat(np.repeat(LINE, 2, axis=3), 2, axis=2)},
        name="Scale before scale",
    ),
    OpCase(
        "bilinear_interp_v2",
        {"X": LINE},
        {"scale": [1.0, 1.2], "align_corners": False, "align_mode": 1},
        {"Out": LINE},
        name="a scale that changes no size",
    ),
    OpCase(
        "pad3d",
        {"X": LINE[None].reshape(1, 1, 1, 1, 4), "Paddings": np.array([1, 2, 0, 0, 0, 0], "int32")},
        {"paddings": [0, 0, 1, 1, 0, 0], "mode": "circular"},
        {"Out": np.array([9.0, 0, 1, 4, 9, 0, 1]).reshape(1, 1, 1, 1, 7)},
        ["X"],
        name="Paddings before paddings",
    ),
    OpCase(
        "conv2d_transpose",
        {"Input": np.ones((1, 1, 1, 1)), "Filter": np.full((1, 2, 2, 2), 3.0), "Bias": np.array([0.5, -1.0])},
        {},
        {"Output": np.broadcast_to(np.array([3.5, 2.0]).reshape(1, 2, 1, 1), (1, 2, 2, 2))},
        ["Input", "Filter"],
        name="Bias",
    ),
    OpCase(
        "pool2d",
        {"X": np.arange(1.0, 9.0).reshape(1, 1, 1, 8)},
        {"ksize": [1, 1], "strides": [1, 3], "ceil_mode": True, "pooling_type": "avg"},
        {"Out": np.array([1.0, 4.0, 7.0, 0.0]).reshape(1, 1, 1, 4)},
        ["X"],
        name="a window behind the end",
    ),
    OpCase(
        "batch_norm",
        {s: np.array(v) for s, v in {"X": [[3.0, 5.0]], "Scale": [2.0, 2.0], "Bias": [1.0, 1.0]}.items()}
        | {"Mean": np.array([0.5, 0.5]), "Variance": np.array([1.0, 1.0])},
        {},
        {"Y": np.array([[3.0, 5.0]]), "MeanOut": np.array([0.5, 0.5]), "VarianceOut": np.array([1.0, 1.0])},
        name="one element per channel",
    ),
    OpCase(
        "conv2d",
        {"Input": np.zeros((0, 2, 5, 5)), "Filter": _numbers(3, 2, 3, 3)},
        {"strides": [2, 2]},
        {"Output": np.zeros((0, 3, 2, 2))},
        name="no image",
    ),
]

CONV = {"strides": [2, 1], "paddings": [1, 0, 2, 1], "groups": 2}
SECOND_GRADIENTS = [
    OpCase(
        "conv2d_grad",
        {"Input": _numbers(2, 4, 5, 4), "Filter": _numbers(2, 2, 3, 2), "Output@GRAD": _numbers(2, 2, 2, 6)},
        CONV,
        grads=["Input", "Filter", "Output@GRAD"],
    ),
    OpCase(
        "conv2d_grad",
        {"Input": _numbers(2, 5, 4, 4), "Filter": _numbers(2, 2, 3, 2), "Output@GRAD": _numbers(2, 2, 6, 2)},
        CONV | {"data_format": "NHWC"},
        grads=["Input", "Filter", "Output@GRAD"],
        name="NHWC",
    ),
    OpCase(
        "depthwise_conv2d_grad",
        {"Input": _numbers(2, 2, 5, 4), "Filter": _numbers(4, 1, 3, 2), "Output@GRAD": _numbers(2, 4, 2, 6)},
        CONV,
        grads=["Input", "Filter", "Output@GRAD"],
    ),
    OpCase(
        "conv2d_transpose_grad",
        {"Input": _numbers(2, 4, 3, 2), "Filter": _numbers(4, 1, 3, 3), "Output@GRAD": _numbers(2, 2, 6, 3)},
        {"strides": [2, 2], "paddings": [1, 1], "output_size": [6, 3], "groups": 2},
        grads=["Input", "Filter", "Output@GRAD"],
        name="output_size",
    ),
    OpCase(
        "pool2d_grad",
        {"X": _numbers(2, 2, 5, 5), "Out": _numbers(2, 2, 3, 2), "Out@GRAD": _numbers(2, 2, 3, 2)},
        {"ksize": [3, 2], "pooling_type": "avg", "adaptive": True},
        grads=["Out@GRAD"],
    ),
    OpCase(
        "pad3d_grad",
        {"X": _numbers(1, 1, 2, 3, 3), "Out@GRAD": _numbers(1, 1, 4, 5, 6)},
        {"paddings": [1, 2, 1, 1, 1, 1], "mode": "circular"},
        grads=["Out@GRAD"],
    ),
    OpCase(
        "batch_norm_grad",
        {"X": _numbers(3, 2, 2), "Scale": _numbers(2), "Bias": _numbers(2), "SavedMean": _numbers(2)}
        | {"SavedVariance": np.array([1.0, 0.5]), "Mean": _numbers(2), "Variance": np.array([1.0, 2.0])}
        | {"Y@GRAD": _numbers(3, 2, 2)},
        {"is_test": True},
        grads=["X", "Scale", "Y@GRAD"],
    ),
]


@pytest.mark.parametrize("record", RECORDS, ids=lambda r: r.id)
def test_outputs(record):
    assert record.check() == []


@pytest.mark.parametrize("record", SECOND_GRADIENTS, ids=lambda r: r.id)
def test_second_gradient(record):
    assert record.check_gradient() == []


@pytest.mark.parametrize("sparse", [False, True])
def test_gradient_of_a_table_sums_duplicates(sparse):
    record = OpCase(
        "lookup_table_v2",
        {"W": _numbers(5, 2), "Ids": np.array([3, 0, 3])},
        {"is_sparse": sparse},
        grads=["W"],
    )
    assert record.check_gradient() == []


def test_gradient_of_a_table_given_by_rows_has_its_height():
    rows = SelectedRows([1, 3], _numbers(2, 2), 5)
    record = OpCase(
        "lookup_table_grad",
        {"W": rows, "Ids": np.array([[3], [1], [3]]), "Out@GRAD": np.ones((3, 2))},
        {"is_sparse": True},
        {"W@GRAD": SelectedRows([1, 3, 3], np.ones((3, 2)), 5)},
    )
    assert record.check() == []


def _run_with_size(op, inputs, out_slot, attrs, size_attr, size):
    """The op with an attribute given as one variable per number, on both paths."""
    program = Program()
    block = program.global_block()
    parts = {f"size_{i}": np.array([n], "int32") for i, n in enumerate(size)}
    for name, value in (inputs | parts).items():
        block.create_var(name, dtype=str(value.dtype), shape=value.shape)
    block.create_var("y")
    bound = {slot: [slot] for slot in inputs}
    block.append_op(OpDesc(op, bound, {out_slot: ["y"]}, attrs | {size_attr: list(parts)}, {size_attr: AttrType.VARS}))
    return [Executor(prepared=p).run(program, inputs | parts, ["y"])[0] for p in (False, True)]


def test_ksize_given_as_variables():
    x = np.arange(9, dtype="float32").reshape(1, 1, 3, 3)
    for y in _run_with_size("pool2d", {"X": x}, "Out", {"pooling_type": "max"}, "ksize", [2, 3]):
        np.testing.assert_array_equal(y, [[[[5], [8]]]])


def test_output_size_given_as_variables():
    inputs = {"Input": np.ones((1, 1, 1, 2), "float32"), "Filter": np.ones((1, 1, 1, 2), "float32")}
    for y in _run_with_size("conv2d_transpose", inputs, "Output", {"strides": [1, 3]}, "output_size", [1, 6]):
        np.testing.assert_array_equal(y, [[[[1, 1, 0, 1, 1, 0]]]])


IMAGES, CHANNELS = _numbers(2, 3, 2, 2), _numbers(3)
_AFTER_NORM = {"Scale": CHANNELS, "Bias": CHANNELS, "SavedMean": CHANNELS, "SavedVariance": CHANNELS, "Y@GRAD": IMAGES}
_LABELS = np.array([[0], [1]])
_PATHS = {"X": _numbers(2, 4), "W": _numbers(3, 4), "Label": _LABELS, "PreOut": _numbers(2, 3)}
_PATHS |= {"Out@GRAD": _numbers(2, 1)}
_NOISE = {"Input": _numbers(2, 4), "Label": _LABELS, "Weight": _numbers(6, 4), "SampleLogits": _numbers(2, 3)}
_NOISE |= {"SampleLabels": np.array([[0, 1, 2], [1, 1, 2]]), "Cost@GRAD": _numbers(2, 1)}

FAILURES = [
    (
        OpCase("affine_channel_grad", {"Scale": CHANNELS, "Out@GRAD": IMAGES}, {}, {"Scale@GRAD": CHANNELS}),
        "X is absent and Scale@GRAD an output",
    ),
    *(
        (
            OpCase(op, {source: IMAGES, **_AFTER_NORM}, {"is_test": True}, {"X@GRAD": IMAGES}),
            "no Mean and no Variance given; with is_test True",
        )
        for op, source in (("batch_norm_grad", "X"), ("sync_batch_norm_grad", "X"), ("inplace_abn_grad", "Y"))
    ),
    (
        OpCase(
            "batch_norm_grad_grad",
            {
                "X": IMAGES,
                "Scale": CHANNELS,
                "Mean": CHANNELS,
                "Variance": CHANNELS,
                "SavedMean": CHANNELS,
                "DY": IMAGES,
            },
            {},
            {"DX": IMAGES},
        ),
        "no SavedVariance given; with is_test False",
    ),
    (
        OpCase(
            "data_norm_grad",
            {"X": _numbers(2, 3), "Means": CHANNELS, "Scales": CHANNELS, "Y@GRAD": _numbers(2, 3)},
            {"enable_scale_and_shift": True},
            {"X@GRAD": _numbers(2, 3)},
        ),
        "scale_w is absent; enable_scale_and_shift needs it",
    ),
    (
        OpCase("hierarchical_sigmoid_grad", _PATHS | {"PathCode": np.ones((2, 3), "int64")}, {"num_classes": 4}),
        "PathTable and PathCode have to be given together",
    ),
    (
        OpCase("hierarchical_sigmoid_grad", _PATHS, {"num_classes": 4}),  # whose tree is complete, with paths of two
        "PreOut has shape [2, 3]",
    ),
    (
        OpCase("nce_grad", _NOISE, {"num_total_classes": 6, "num_neg_samples": 2, "sampler": 2}),
        "CustomDistProbs is absent; sampler 2 needs it",
    ),
    (
        OpCase(
            "nce_grad",
            _NOISE | {"CustomDistProbs": np.full(5, 0.2)},
            {"num_total_classes": 6, "num_neg_samples": 2, "sampler": 2},
        ),
        "CustomDistProbs has shape [5]; expected the probabilities of num_total_classes, 6",
    ),
    (OpCase("lookup_table", {"W": _numbers(3, 2), "Ids": np.array([[3]])}), "Ids holds 3; expected 0 <= id < 3"),
    (OpCase("lookup_table", {"W": TABLE, "Ids": np.array([[5]])}), "id 5 is not among the 3 rows"),
    (OpCase("lookup_table", {"W": _numbers(3, 2), "Ids": np.array([1, 2])}), "expected a last dim of 1"),
    (
        OpCase("conv2d", {"Input": _numbers(1, 3, 4, 4), "Filter": _numbers(2, 4, 1, 1)}),
        "3 channels (NCHW), but Filter [2, 4, 1, 1] takes 4 x groups 1 = 4",
    ),
    (
        OpCase("conv2d", {"Input": _numbers(1, 3, 2, 2), "Filter": _numbers(2, 3, 3, 3)}),
        "the kernel [3, 3] with dilations [1, 1] is larger than the padded Input [2, 2]",
    ),
    (
        OpCase(
            "conv2d_transpose", {"Input": _numbers(1, 1, 2, 2), "Filter": _numbers(1, 1, 2, 2)}, {"output_size": [5, 3]}
        ),
        "output_size is [5, 3]; expected 3 <= 5 < 4",
    ),
    (OpCase("pool2d", {"X": LINE}, {"ksize": [2], "pooling_type": "max"}), "ksize is [2]; expected 2 numbers"),
    (OpCase("bilinear_interp_v2", {"X": LINE}), "the output's size comes out as [0, 0]"),
    (OpCase("group_norm", {"X": _numbers(1, 3, 2)}, {"groups": 2}), "groups is 2; expected a divisor of 3"),
    (OpCase("pixel_shuffle", {"X": _numbers(1, 3, 2, 2)}, {"upscale_factor": 2}), "has 3 channels"),
    (
        OpCase("pool2d_double_grad", {"grad_x@GRAD": LINE}, {"ksize": [1, 1], "pooling_type": "max"}),
        "max pooling has no second gradient",
    ),
]


@pytest.mark.parametrize("record, message", FAILURES, ids=lambda v: getattr(v, "op", ""))
def test_messages(record, message):
    reasons = record.check()
    assert reasons and message in reasons[0], reasons
