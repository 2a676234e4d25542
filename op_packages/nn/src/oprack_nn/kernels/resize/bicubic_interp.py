"""Kernels of bicubic_interp and its gradient."""

from __future__ import annotations

from oprack.kernel import kernel
from oprack.types import FLOATS

from oprack_nn.kernels.resize._interp import PLACES, SCATTER, interp, interp_grad

bicubic_interp = kernel("bicubic_interp", place=PLACES, dtypes=FLOATS)(interp)
bicubic_interp_grad = kernel("bicubic_interp_grad", dtypes=FLOATS, **SCATTER)(interp_grad)
