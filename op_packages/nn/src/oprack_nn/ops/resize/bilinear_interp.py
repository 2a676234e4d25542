"""bilinear_interp: all of the op but its kernels."""

from __future__ import annotations

from oprack_nn.ops.resize._interp import InterpGrad, InterpV1


class BilinearInterp(InterpV1, type="bilinear_interp"):
    """Linear interpolation along H and W.

    X is [N, C, H, W]. The ratio of the sizes decides where the samples lie.
    """


class BilinearInterpGrad(InterpGrad, of=BilinearInterp):
    """Out@GRAD goes back to the elements of X with their weights in bilinear_interp."""
