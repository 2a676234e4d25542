"""Kernels of conv3d and its gradients."""

from __future__ import annotations

from oprack.kernel import kernel
from oprack.types import FLOATS

from oprack_nn.kernels.conv._family import PLACES, conv, conv_grad, conv_grad_grad

conv3d = kernel("conv3d", place=PLACES, dtypes=FLOATS)(conv)
conv3d_grad = kernel("conv3d_grad", place=PLACES, dtypes=FLOATS)(conv_grad)
conv3d_grad_grad = kernel("conv3d_grad_grad", place=PLACES, dtypes=FLOATS)(conv_grad_grad)
