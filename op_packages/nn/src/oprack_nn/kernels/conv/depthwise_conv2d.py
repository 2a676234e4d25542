"""Kernels of depthwise_conv2d and its gradients."""

from __future__ import annotations

from oprack.kernel import kernel
from oprack.types import FLOATS

from oprack_nn.kernels.conv._family import PLACES, conv, conv_grad, conv_grad_grad

depthwise_conv2d = kernel("depthwise_conv2d", place=PLACES, dtypes=FLOATS)(conv)
depthwise_conv2d_grad = kernel("depthwise_conv2d_grad", place=PLACES, dtypes=FLOATS)(conv_grad)
depthwise_conv2d_grad_grad = kernel("depthwise_conv2d_grad_grad", place=PLACES, dtypes=FLOATS)(conv_grad_grad)
