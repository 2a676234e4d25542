"""Attributes that many ops of old programs carry for other kernel libraries."""

from __future__ import annotations

from oprack.op import Attr

USE_MKLDNN = Attr(False, "Prefer a oneDNN kernel.", extra=True)
USE_QUANTIZER = Attr(False, "Set by quantisation tools.", extra=True)
MKLDNN_DATA_TYPE = Attr("float32", "dtype of oneDNN kernels.", extra=True)
DATA_FORMAT = Attr("AnyLayout", "Memory layout of old programs.", extra=True)
