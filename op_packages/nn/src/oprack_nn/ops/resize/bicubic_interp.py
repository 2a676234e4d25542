"""bicubic_interp: all of the op but its kernels."""

from __future__ import annotations

from oprack_nn.ops.resize._interp import InterpGrad, InterpV1


class BicubicInterp(InterpV1, type="bicubic_interp"):
    """Cubic convolution (a = -0.75) along H and W.

    X is [N, C, H, W]. The ratio of the sizes decides where the samples lie.
    """


class BicubicInterpGrad(InterpGrad, of=BicubicInterp):
    """Out@GRAD goes back to the elements of X with their weights in bicubic_interp."""
