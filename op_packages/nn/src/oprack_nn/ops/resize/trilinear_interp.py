"""trilinear_interp: all of the op but its kernels."""

from __future__ import annotations

from oprack_nn.ops.resize._interp import InterpGrad, InterpV1


class TrilinearInterp(InterpV1, type="trilinear_interp"):
    """Linear interpolation along D, H and W.

    X is [N, C, D, H, W]. The ratio of the sizes decides where the samples lie.
    """


class TrilinearInterpGrad(InterpGrad, of=TrilinearInterp):
    """Out@GRAD goes back to the elements of X with their weights in trilinear_interp."""
