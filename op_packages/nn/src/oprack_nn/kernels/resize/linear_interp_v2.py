"""Kernels of linear_interp_v2 and its gradient."""

from __future__ import annotations

from oprack.kernel import kernel

from oprack_nn.kernels.resize._interp import NUMBERS, PLACES, REALS, SCATTER, interp, interp_grad

linear_interp_v2 = kernel("linear_interp_v2", place=PLACES, dtypes=NUMBERS)(interp)
linear_interp_v2_grad = kernel("linear_interp_v2_grad", dtypes=REALS, **SCATTER)(interp_grad)
