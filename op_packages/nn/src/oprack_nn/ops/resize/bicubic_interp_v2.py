"""bicubic_interp_v2: all of the op but its kernels."""

from __future__ import annotations

from oprack_nn.ops.resize._interp import InterpGrad, InterpV2


class BicubicInterpV2(InterpV2, type="bicubic_interp_v2"):
    """Cubic convolution (a = -0.75) along H and W.

    X is [N, C, H, W]. scale, where given, decides where the samples lie.
    """


class BicubicInterpV2Grad(InterpGrad, of=BicubicInterpV2):
    """Out@GRAD goes back to the elements of X with their weights in bicubic_interp_v2."""
