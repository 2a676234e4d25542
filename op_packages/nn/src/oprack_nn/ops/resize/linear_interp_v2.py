"""linear_interp_v2: all of the op but its kernels."""

from __future__ import annotations

from oprack.op.sbp import leading

from oprack_nn.ops.resize._interp import InterpGrad, InterpV2


class LinearInterpV2(InterpV2, type="linear_interp_v2"):
    r"""$$Out_i = (1 - d) X_{\lfloor s \rfloor} + d X_{\lfloor s \rfloor + 1}$$ with d = s - \lfloor s \rfloor.

    X is [N, C, W]. scale, where given, decides where the samples lie.
    """

    sbp = leading(("X",), ("Out",))


class LinearInterpV2Grad(InterpGrad, of=LinearInterpV2):
    """Out@GRAD goes back to the elements of X with their weights in linear_interp_v2."""
