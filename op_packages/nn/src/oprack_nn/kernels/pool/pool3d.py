"""Kernels of pool3d and its gradient."""

from __future__ import annotations

from oprack.kernel import kernel
from oprack.types import FLOATS

from oprack_nn.kernels.pool._family import PLACES, SCATTER, pool, pool_grad

pool3d = kernel("pool3d", place=PLACES, dtypes=FLOATS)(pool)
pool3d_grad = kernel("pool3d_grad", dtypes=FLOATS, **SCATTER)(pool_grad)
