"""Models in int8 for the benchmark, quantised by the inputs that are timed: accuracy.py says what that costs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from workloads import MODELS, Workload

FOLDER = MODELS / "int8"


def by_oprack(workload: Workload) -> Path:
    """What `oprack quantize` makes of a workload's model; the path without .pdmodel."""
    path = FOLDER / "oprack" / _name(workload)
    if not path.with_name(f"{path.name}.pdmodel").exists():
        from oprack import Scope, quantization
        from oprack.io import load_inference_model, save_inference_model

        scope = Scope()
        model = load_inference_model(workload.model, scope)
        feeds = [dict(zip(model.feed_names, workload.feeds, strict=True))]
        done = quantization.quantize_post_training(model.program, scope, feeds, model.fetch_names)
        path.parent.mkdir(parents=True, exist_ok=True)
        save_inference_model(path, done.program, model.feed_names, model.fetch_names, scope)
    return path


def by_onnxruntime(workload: Workload) -> Path:
    """What ONNX Runtime's tool makes of a workload's ONNX model: QDQ nodes, weights by channel."""
    path = FOLDER / "onnxruntime" / f"{_name(workload)}.onnx"
    if not path.exists():
        from onnxruntime import quantization as tool

        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_suffix(".part")
        tool.quantize_static(
            str(workload.onnx),
            str(part),
            _Inputs(workload),
            quant_format=tool.QuantFormat.QDQ,
            per_channel=True,
            weight_type=tool.QuantType.QInt8,
            activation_type=tool.QuantType.QUInt8,
        )
        part.rename(path)
    return path


class _Inputs:
    """The workload's inputs once, as the tool asks for them."""

    def __init__(self, workload: Workload) -> None:
        import onnxruntime

        session = onnxruntime.InferenceSession(str(workload.onnx), providers=["CPUExecutionProvider"])
        names = [i.name for i in session.get_inputs()]
        self._left: list[dict[str, np.ndarray]] = [dict(zip(names, workload.feeds, strict=True))]

    def get_next(self) -> Any:
        """The next inputs; None after the last ones."""
        return self._left.pop() if self._left else None


def _name(workload: Workload) -> str:
    return workload.name.replace(" ", "_")
