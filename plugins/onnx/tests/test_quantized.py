"""Quantised models, in float32 or multiplied as bytes, against what ONNX Runtime gives without its own fusions."""

from __future__ import annotations

import numpy as np
import onnxruntime
import pytest
from onnx import ModelProto, helper
from onnx_models import model
from oprack import inference
from oprack_onnx.reader import read_model

X = np.random.default_rng(1).standard_normal((2, 3, 12, 12)).astype("float32")
KINDS = {"int8": (np.int8, 0), "uint8": (np.uint8, 117)}
STEPS = (0.0273, 0.0411, 0.0833)
"""No ratio of these is a small fraction, by which integers would lie in the middle between two others."""


def quantized(kind: str, operators: bool) -> ModelProto:
    """Two convolutions between quantisations, each as an op of its own, or as ops around those of floats."""
    dtype, zero = KINDS[kind]
    rng, held, node = np.random.default_rng(2), {}, helper.make_node
    for i, (channels, count) in enumerate(((3, 6), (6, 4))):
        held[f"w{i}"] = rng.integers(-127, 128, (count, channels, 3, 3)).astype(np.int8)
        held[f"ws{i}"] = (0.0031 * rng.uniform(0.5, 1, count)).astype("float32")
        held[f"wz{i}"] = np.zeros(count, np.int8)
        held[f"b{i}"] = rng.integers(-800, 800, count).astype(np.int32) if operators else rng.standard_normal(count)
    held |= {f"s{i}": np.array(step, np.float32) for i, step in enumerate(STEPS)}
    held |= {f"z{i}": np.array(zero, dtype) for i in range(3)}
    held = {n: a.astype("float32") if a.dtype == np.float64 else a for n, a in held.items()}
    nodes = [node("QuantizeLinear", ["x", "s0", "z0"], ["q0"])]
    for i in (0, 1):
        scales = [f"s{i}", f"z{i}"], [f"ws{i}", f"wz{i}"], [f"s{i + 1}", f"z{i + 1}"]
        if operators:
            inputs = [f"q{i}", *scales[0], f"w{i}", *scales[1], *scales[2], f"b{i}"]
            nodes.append(node("QLinearConv", inputs, [f"q{i + 1}"], pads=[1] * 4))
        else:
            nodes += [
                node("DequantizeLinear", [f"q{i}", *scales[0]], [f"d{i}"]),
                node("DequantizeLinear", [f"w{i}", *scales[1]], [f"f{i}"], axis=0),
                node("Conv", [f"d{i}", f"f{i}", f"b{i}"], [f"c{i}"], pads=[1] * 4),
                node("QuantizeLinear", [f"c{i}", *scales[2]], [f"q{i + 1}"]),
            ]
    nodes.append(node("DequantizeLinear", ["q2", "s2", "z2"], ["y"]))
    return model(nodes, {"x": [None, 3, 12, 12]}, ["y"], held)


@pytest.mark.parametrize("bytes_", [False, True], ids=["floats", "bytes"])
@pytest.mark.parametrize("operators", [False, True], ids=["qdq", "qlinear"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_quantised_net_answers_as_onnx_runtime(kind, operators, bytes_):
    data = quantized(kind, operators).SerializeToString()
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    (want,) = onnxruntime.InferenceSession(data, options).run(None, {"x": X})
    config = inference.Config()
    config.set_model_buffer(data, len(data), b"", 0)
    if bytes_:
        config.enable_mkldnn_int8()
    (got,) = inference.create_predictor(config).run([X])
    steps = np.rint((got - want) / STEPS[-1])
    np.testing.assert_allclose(got - want, steps * STEPS[-1], atol=1e-4)
    # a sum in another order is another one by its last bit, which may lie between two steps
    assert np.abs(steps).max() <= 1 and np.mean(steps != 0) < 0.01


def test_steps_around_zero_are_those_of_paddle_s_ops_and_weights_are_restored_once():
    ops = [o.type for o in read_model(quantized("int8", False).SerializeToString(), None).program.desc.blocks[0].ops]
    assert ops.count("quantize_linear") == 3 and ops.count("dequantize_linear") == 3
    assert not [op for op in ops if op.startswith("onnx_")]
