"""Kernels of bicubic_interp_v2 and its gradient."""

from __future__ import annotations

from oprack.kernel import kernel

from oprack_nn.kernels.resize._interp import PLACES, REALS, SCATTER, interp, interp_grad

bicubic_interp_v2 = kernel("bicubic_interp_v2", place=PLACES, dtypes=REALS)(interp)
bicubic_interp_v2_grad = kernel("bicubic_interp_v2_grad", dtypes=REALS, **SCATTER)(interp_grad)
