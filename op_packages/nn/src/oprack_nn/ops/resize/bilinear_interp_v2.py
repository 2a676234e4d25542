"""bilinear_interp_v2: all of the op but its kernels."""

from __future__ import annotations

from oprack_nn.ops.resize._interp import InterpGrad, InterpV2


class BilinearInterpV2(InterpV2, type="bilinear_interp_v2"):
    """Linear interpolation along H and W.

    X is [N, C, H, W]. scale, where given, decides where the samples lie.
    """


class BilinearInterpV2Grad(InterpGrad, of=BilinearInterpV2):
    """Out@GRAD goes back to the elements of X with their weights in bilinear_interp_v2."""
