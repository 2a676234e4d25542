"""nearest_interp: all of the op but its kernels."""

from __future__ import annotations

from oprack.op.sbp import leading

from oprack_nn.ops.resize._interp import InterpGrad, InterpV1


class NearestInterp(InterpV1, type="nearest_interp"):
    r"""$$Out_{y,x} = X_{\lfloor y r_h \rfloor, \lfloor x r_w \rfloor}$$, rounded to the nearest with align_corners.

    X is [N, C, H, W]. The ratio of the sizes decides where the samples lie.
    """

    sbp = leading(("X",), ("Out",))


class NearestInterpGrad(InterpGrad, of=NearestInterp):
    """Out@GRAD goes back to the elements of X with their weights in nearest_interp."""
