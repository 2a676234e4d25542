"""Kernels of unpool and its gradient."""

from __future__ import annotations

from oprack.kernel import kernel
from oprack.types import FLOATS

from oprack_nn.kernels.pool import _unpool
from oprack_nn.kernels.pool._family import PLACES

unpool = kernel("unpool", place=PLACES, dtypes=FLOATS)(_unpool.unpool)
unpool_grad = kernel("unpool_grad", place=PLACES, dtypes=FLOATS)(_unpool.unpool_grad)
