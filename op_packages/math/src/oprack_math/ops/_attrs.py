"""Attributes of quantised models that several ops carry; oprack's own kernels ignore them."""

from __future__ import annotations

from oprack.op import Attr

FORCE_FP32_OUTPUT = Attr(False, "Quantised kernels give float32.", extra=True)
SCALE_X = Attr(1.0, "Scale of X in a quantised model.", extra=True)
SCALE_Y = Attr(1.0, "Scale of Y in a quantised model.", extra=True)
SCALE_OUT = Attr(1.0, "Scale of Out in a quantised model.", extra=True)
