"""Attributes that many ops carry for oneDNN, cuDNN and quantised models; oprack's own kernels ignore them."""

from __future__ import annotations

from oprack.op import Attr

USE_MKLDNN = Attr(False, "Run oneDNN's kernel where its plugin is installed.", extra=True)
USE_CUDNN = Attr(False, "Run cuDNN's kernel where its plugin is installed.", extra=True)
USE_QUANTIZER = Attr(False, "Marked for quantisation.", extra=True)
MKLDNN_DATA_TYPE = Attr("float32", "dtype of oneDNN's kernel.", extra=True)
FORCE_FP32_OUTPUT = Attr(False, "Quantised kernels give float32.", extra=True)
SCALE_X = Attr(1.0, "Scale of X in a quantised model.", extra=True)
SCALE_Y = Attr(1.0, "Scale of Y in a quantised model.", extra=True)
SCALE_OUT = Attr(1.0, "Scale of Out in a quantised model.", extra=True)
