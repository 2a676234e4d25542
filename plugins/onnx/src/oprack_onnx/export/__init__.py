"""Programs written as models of ONNX."""

from __future__ import annotations

from oprack_onnx.export.model import OPSET, export_model

__all__ = ["OPSET", "export_model"]
