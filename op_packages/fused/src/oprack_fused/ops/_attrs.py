"""Attributes by which Paddle chooses a library, and those of quantised models; kernels here read none of them."""

from __future__ import annotations

from oprack.op import Attr

USE_MKLDNN = Attr(False, "Paddle: prefer the oneDNN kernel.")
MKLDNN_DATA_TYPE = Attr("float32", "Paddle: dtype of the oneDNN kernel.")
SCALE_WEIGHTS = Attr([1.0], "Scales of the weights in a quantised model.")
FORCE_FP32_OUTPUT = Attr(False, "Quantised kernels give float32.")
