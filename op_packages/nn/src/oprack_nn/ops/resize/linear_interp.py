"""linear_interp: all of the op but its kernels."""

from __future__ import annotations

from oprack.op.sbp import leading

from oprack_nn.ops.resize._interp import InterpGrad, InterpV1


class LinearInterp(InterpV1, type="linear_interp"):
    r"""$$Out_i = (1 - d) X_{\lfloor s \rfloor} + d X_{\lfloor s \rfloor + 1}$$ with d = s - \lfloor s \rfloor.

    X is [N, C, W]. The ratio of the sizes decides where the samples lie.
    """

    sbp = leading(("X",), ("Out",))


class LinearInterpGrad(InterpGrad, of=LinearInterp):
    """Out@GRAD goes back to the elements of X with their weights in linear_interp."""
