"""dequantize_linear: all of the op but its kernels."""

from __future__ import annotations

from oprack.op import dtype_of

from oprack_quantization.ops.linear._family import Linear


class DequantizeLinear(Linear, type="dequantize_linear"):
    r"""$$Y_c = X_c \cdot Scale_c / B,\quad B = 2^{bit\_length - 1} - 1$$"""

    expected_kernel_type = dtype_of("X")
