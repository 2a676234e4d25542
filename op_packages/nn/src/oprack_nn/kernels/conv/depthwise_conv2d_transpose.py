"""Kernels of depthwise_conv2d_transpose and its gradient."""

from __future__ import annotations

from oprack.kernel import kernel
from oprack.types import FLOATS

from oprack_nn.kernels.conv._conv_transpose import PLACES, conv_transpose_grad
from oprack_nn.kernels.conv.conv2d_transpose import conv2d_transpose

depthwise_conv2d_transpose = kernel("depthwise_conv2d_transpose", place=PLACES, dtypes=FLOATS)(conv2d_transpose)
depthwise_conv2d_transpose_grad = kernel("depthwise_conv2d_transpose_grad", place=PLACES, dtypes=FLOATS)(
    conv_transpose_grad
)
