"""Cases of onnxruntime_engine: a model of two nodes, whose numbers are whole."""

from __future__ import annotations

import numpy as np
from onnx import TensorProto, helper
from oprack import LoDTensor
from oprack.testing import OpCase

_INFOS = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [None, 2]) for name in ("x", "y")]
_WEIGHT = helper.make_tensor_value_info("w", TensorProto.FLOAT, [2, 2])
_NODES = [helper.make_node("MatMul", ["x", "w"], ["p"]), helper.make_node("Relu", ["p"], ["y"])]
_GRAPH = helper.make_graph(_NODES, "net", [_INFOS[0], _WEIGHT], _INFOS[1:])
_MODEL = helper.make_model(_GRAPH, opset_imports=[helper.make_opsetid("", 20)], ir_version=9).SerializeToString()

model = np.frombuffer(_MODEL, np.uint8).copy()
w = np.array([[1, -1], [2, 0]], "float32")
x = np.array([[1, 2], [-3, 1], [0, 4]], "float32")
y = np.array([[5, 0], [0, 3], [8, 0]], "float32")  # rows times w: (5, -1), (-1, 3), (8, 0)
attrs = {"dtypes": [5], "shapes": [2, -1, 2], "lods": [0]}

CASES = [
    OpCase("onnxruntime_engine", {"Xs": [x], "Params": [w], "Model": model}, attrs, {"Ys": [y]}),
    OpCase(
        "onnxruntime_engine",
        {"Xs": [LoDTensor(x, [[0, 1, 1, 3]])], "Params": [w], "Model": model},
        attrs,
        {"Ys": [LoDTensor(y, [[0, 1, 1, 3]])]},
        name="sequences",
    ),
    OpCase(
        "onnxruntime_engine",
        {"Xs": [x[:0]], "Params": [w], "Model": model},
        attrs,
        {"Ys": [y[:0]]},
        name="empty",
    ),
]
