"""Kernels of bilinear_interp and its gradient."""

from __future__ import annotations

from oprack.kernel import kernel
from oprack.types import FLOATS

from oprack_nn.kernels.resize._interp import PLACES, SCATTER, interp, interp_grad

bilinear_interp = kernel("bilinear_interp", place=PLACES, dtypes=FLOATS | {"uint8"})(interp)
bilinear_interp_grad = kernel("bilinear_interp_grad", dtypes=FLOATS, **SCATTER)(interp_grad)
