"""float16 and bfloat16 at place cuda agree with float32, within their precision."""

from __future__ import annotations

from typing import Any

import numpy as np
import oprack
import pytest
from oprack.desc import OpDesc
from oprack_cuda.testing import strict_executor

RNG = np.random.default_rng(0)


def normal(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


def ones(*shape: int) -> np.ndarray:
    return np.ones(shape, np.float32)


IMAGE, CONV = {"data_format": "NCHW"}, {"strides": [1, 1], "paddings": [1, 1], "dilations": [1, 1], "groups": 1}
NORM = {"Scale": ones(4) * 2, "Bias": ones(4)}
STATISTICS = {"Mean": ones(4), "Variance": ones(4)}
# op -> (inputs that are 16-bit, inputs that stay as they are, attributes, outputs and whether they are 16-bit)
CASES: dict[str, tuple[dict[str, Any], dict[str, Any], dict[str, Any], dict[str, bool]]] = {
    "conv2d": ({"Input": normal(2, 4, 5, 5), "Filter": normal(3, 4, 3, 3)}, {}, CONV, {"Output": True}),
    "conv2d_transpose": ({"Input": normal(2, 4, 5, 5), "Filter": normal(4, 3, 3, 3)}, {}, CONV, {"Output": True}),
    "conv2d_grad": (
        {"Input": normal(2, 4, 5, 5), "Filter": normal(3, 4, 3, 3), "Output@GRAD": normal(2, 3, 5, 5)},
        {},
        CONV,
        {"Input@GRAD": True, "Filter@GRAD": True},
    ),
    "pool2d": (
        {"X": normal(2, 4, 6, 6)},
        {},
        {"ksize": [2, 2], "strides": [2, 2], "pooling_type": "avg"},
        {"Out": True},
    ),
    "batch_norm": (
        {"X": normal(3, 4, 5, 5)},
        NORM | STATISTICS,
        {"epsilon": 1e-3},
        {"Y": True, "MeanOut": False, "VarianceOut": False, "SavedMean": False, "SavedVariance": False},
    ),
    "batch_norm_grad": (
        {"X": normal(3, 4, 5, 5), "Y@GRAD": normal(3, 4, 5, 5)},
        NORM | {"SavedMean": ones(4) * 0.1, "SavedVariance": ones(4)},
        {"epsilon": 1e-3},
        {"X@GRAD": True, "Scale@GRAD": False, "Bias@GRAD": False},
    ),
    "group_norm": ({"X": normal(2, 4, 5)}, NORM, {"groups": 2}, {"Y": True, "Mean": False, "Variance": False}),
    "instance_norm": ({"X": normal(2, 4, 5, 5)}, NORM, {}, {"Y": True, "SavedMean": False, "SavedVariance": False}),
    "layer_norm": (
        {"X": normal(6, 8)},
        {"Scale": ones(8) * 2, "Bias": ones(8)},
        {"begin_norm_axis": 1},
        {"Y": True, "Mean": False, "Variance": False},
    ),
    "layer_norm_grad": (
        {"X": normal(6, 8), "Y@GRAD": normal(6, 8)},
        {"Scale": ones(8) * 2, "Bias": ones(8), "Mean": ones(6) * 0.1, "Variance": ones(6)},
        {"begin_norm_axis": 1},
        {"X@GRAD": True, "Scale@GRAD": False, "Bias@GRAD": False},
    ),
    "prelu": ({"X": normal(2, 4, 5), "Alpha": normal(1)}, {}, {"mode": "all"}, {"Out": True}),
    "softmax": ({"X": normal(5, 7)}, {}, {"axis": -1}, {"Out": True}),
    "softmax_with_cross_entropy": (
        {"Logits": normal(5, 7)},
        {"Label": np.arange(5).reshape(5, 1)},
        {},
        {"Softmax": True, "Loss": True},
    ),
    "gelu": ({"X": normal(64)}, {}, {}, {"Out": True}),
    "matmul_v2": ({"X": normal(4, 8), "Y": normal(8, 3)}, {}, {}, {"Out": True}),
    "lookup_table_v2": ({"W": normal(9, 4)}, {"Ids": np.array([[3, 8], [0, 3]])}, {}, {"Out": True}),
}


def _run(op: str, inputs: dict[str, np.ndarray], attrs: dict[str, Any], outputs: list[str]) -> list[np.ndarray]:
    program = oprack.Program()
    block = program.global_block()
    for name, array in inputs.items():
        block.create_var(name, dtype=array.dtype.name, shape=list(array.shape))
    for name in outputs:
        block.create_var(name)
    block.append_op(OpDesc(op, {s: [s] for s in inputs}, {s: [s] for s in outputs}, attrs))
    return strict_executor().run(program, inputs, outputs)


@pytest.mark.parametrize("name", ["float16", "bfloat16"])
@pytest.mark.parametrize("op", CASES)
def test_agrees_with_float32(op: str, name: str, emulated: None) -> None:
    dtype = np.dtype(pytest.importorskip("ml_dtypes").bfloat16 if name == "bfloat16" else name)
    half, rest, attrs, outputs = CASES[op]
    inputs = {s: x.astype(dtype) for s, x in half.items()}
    got = _run(op, inputs | rest, attrs, list(outputs))
    want = _run(op, {s: x.astype(np.float32) for s, x in inputs.items()} | rest, attrs, list(outputs))
    for (slot, is_half), a, b in zip(outputs.items(), got, want, strict=True):
        assert a.dtype == (dtype if is_half else np.float32), slot
        limit = (4e-3 if name == "float16" else 4e-2) * max(float(np.abs(b).max()), 1)
        np.testing.assert_allclose(a.astype(np.float32), b, rtol=0, atol=limit, err_msg=slot)
