"""Attributes that quantization ops share."""

from __future__ import annotations

from oprack.op import Attr

BIT_LENGTH = Attr(8, "Bits of an integer; the greatest one is B = 2^(bit_length - 1) - 1.").between(1, 16)
ROUND_TYPE = Attr(
    1, "0: ties to even, then cut to [-B - 1, B]; 1: cut to [-B, B], then ties away from zero.", extra=True
).in_set({0, 1})
MOVING_RATE = Attr(0.9, "How much of the average each step keeps.")
IS_TEST = Attr(False, "Use the scale that is given instead of measuring it.")
