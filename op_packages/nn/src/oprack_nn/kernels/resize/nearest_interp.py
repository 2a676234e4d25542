"""Kernels of nearest_interp and its gradient."""

from __future__ import annotations

from oprack.kernel import kernel
from oprack.types import FLOATS

from oprack_nn.kernels.resize._interp import PLACES, SCATTER, interp, interp_grad

nearest_interp = kernel("nearest_interp", place=PLACES, dtypes=FLOATS | {"uint8"})(interp)
nearest_interp_grad = kernel("nearest_interp_grad", dtypes=FLOATS, **SCATTER)(interp_grad)
