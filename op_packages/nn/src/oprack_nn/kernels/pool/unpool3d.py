"""Kernels of unpool3d and its gradient."""

from __future__ import annotations

from oprack.kernel import kernel
from oprack.types import FLOATS

from oprack_nn.kernels.pool import _unpool
from oprack_nn.kernels.pool._family import PLACES

unpool3d = kernel("unpool3d", place=PLACES, dtypes=FLOATS)(_unpool.unpool)
unpool3d_grad = kernel("unpool3d_grad", place=PLACES, dtypes=FLOATS)(_unpool.unpool_grad)
