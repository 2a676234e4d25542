"""nearest_interp_v2: all of the op but its kernels."""

from __future__ import annotations

from oprack.op.sbp import leading

from oprack_nn.ops.resize._interp import InterpGrad, InterpV2


class NearestInterpV2(InterpV2, type="nearest_interp_v2"):
    r"""$$Out_{y,x} = X_{\lfloor y r_h \rfloor, \lfloor x r_w \rfloor}$$, rounded to the nearest with align_corners.

    X is [N, C, H, W]. scale, where given, decides where the samples lie.
    """

    sbp = leading(("X",), ("Out",))


class NearestInterpV2Grad(InterpGrad, of=NearestInterpV2):
    """Out@GRAD goes back to the elements of X with their weights in nearest_interp_v2."""
