"""trilinear_interp_v2: all of the op but its kernels."""

from __future__ import annotations

from oprack_nn.ops.resize._interp import InterpGrad, InterpV2


class TrilinearInterpV2(InterpV2, type="trilinear_interp_v2"):
    """Linear interpolation along D, H and W.

    X is [N, C, D, H, W]. scale, where given, decides where the samples lie.
    """


class TrilinearInterpV2Grad(InterpGrad, of=TrilinearInterpV2):
    """Out@GRAD goes back to the elements of X with their weights in trilinear_interp_v2."""
