"""Kernels of max_pool2d_with_index and its gradient."""

from __future__ import annotations

from oprack.kernel import kernel
from oprack.types import FLOATS

from oprack_nn.kernels.pool._family import PLACES, SCATTER, max_pool_with_index, max_pool_with_index_grad

max_pool2d_with_index = kernel("max_pool2d_with_index", place=PLACES, dtypes=FLOATS)(max_pool_with_index)
max_pool2d_with_index_grad = kernel("max_pool2d_with_index_grad", dtypes=FLOATS, **SCATTER)(max_pool_with_index_grad)
