"""Kernels of linear_interp and its gradient."""

from __future__ import annotations

from oprack.kernel import kernel
from oprack.types import FLOATS

from oprack_nn.kernels.resize._interp import PLACES, SCATTER, interp, interp_grad

linear_interp = kernel("linear_interp", place=PLACES, dtypes=FLOATS | {"uint8"})(interp)
linear_interp_grad = kernel("linear_interp_grad", dtypes=FLOATS, **SCATTER)(interp_grad)
