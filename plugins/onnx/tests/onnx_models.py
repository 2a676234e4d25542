"""Models that the tests make."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import onnx
from onnx import ModelProto, NodeProto, helper, numpy_helper

FLOAT = onnx.TensorProto.FLOAT


def model(
    nodes: Sequence[NodeProto],
    inputs: Mapping[str, Sequence[int | str | None]],
    outputs: Sequence[str],
    held: Mapping[str, np.ndarray] | None = None,
    *,
    opset: int = 17,
    domains: Sequence[str] = (),
) -> ModelProto:
    """A model of float inputs."""
    tensors = [numpy_helper.from_array(a, n) for n, a in (held or {}).items()]
    graph = helper.make_graph(
        list(nodes),
        "made",
        [helper.make_tensor_value_info(n, FLOAT, d) for n, d in inputs.items()],
        [helper.make_tensor_value_info(n, FLOAT, None) for n in outputs],
        tensors,
    )
    opsets = [helper.make_opsetid("", opset), *(helper.make_opsetid(d, 1) for d in domains)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=9)


def net() -> ModelProto:
    """A convolution with its norm and activation, and a product: what passes fuse."""
    rng = np.random.default_rng(0)
    held = {
        "w": rng.standard_normal((4, 3, 3, 3)).astype("float32"),
        "scale": rng.uniform(0.5, 1.5, 4).astype("float32"),
        "bias": rng.standard_normal(4).astype("float32"),
        "mean": rng.standard_normal(4).astype("float32"),
        "var": rng.uniform(0.5, 1.5, 4).astype("float32"),
        "fc": rng.standard_normal((4, 5)).astype("float32"),
    }
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"], pads=[1, 1, 1, 1], kernel_shape=[3, 3]),
        helper.make_node("BatchNormalization", ["c", "scale", "bias", "mean", "var"], ["n"]),
        helper.make_node("Relu", ["n"], ["r"]),
        helper.make_node("GlobalAveragePool", ["r"], ["p"]),
        helper.make_node("Flatten", ["p"], ["f"]),
        helper.make_node("MatMul", ["f", "fc"], ["y"]),
    ]
    return model(nodes, {"x": ["batch", 3, 8, 8]}, ["y"], held)


def expected(x: np.ndarray) -> np.ndarray:
    """What `net` gives, by NumPy alone."""
    held = {t.name: numpy_helper.to_array(t) for t in net().graph.initializer}
    padded = np.pad(x.astype("float64"), ((0, 0), (0, 0), (1, 1), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), (2, 3))
    c = np.einsum("nchwij,ocij->nohw", windows, held["w"].astype("float64"))
    scale, bias, mean, var = (held[n].astype("float64").reshape(1, -1, 1, 1) for n in ("scale", "bias", "mean", "var"))
    normal = (c - mean) / np.sqrt(var + 1e-5) * scale + bias
    return np.maximum(normal, 0).mean((2, 3)) @ held["fc"].astype("float64")
