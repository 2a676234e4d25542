"""bicubic_interp_v2: all of the op but its kernels."""

from __future__ import annotations

from oprack.op.sbp import leading

from oprack_nn.ops.resize._interp import InterpGrad, InterpV2


class BicubicInterpV2(InterpV2, type="bicubic_interp_v2"):
    r"""$$Out_{y,x} = \sum_{i,j=-1}^{2} k(i - f_y) k(j - f_x) X_{\lfloor s_y \rfloor + i, \lfloor s_x \rfloor + j}$$,
    places cut to X.

    Cubic convolution along H and W (Keys, 1981): s = r (y + 0.5) - 0.5, or r y with align_corners, f its fraction, and
    $$k(t) = (a + 2)|t|^3 - (a + 3)|t|^2 + 1$$ up to 1, $$a|t|^3 - 5a|t|^2 + 8a|t| - 4a$$ up to 2, with a = -0.75.

    X is [N, C, H, W]. scale, where given, decides where the samples lie.
    """

    sbp = leading(("X",), ("Out",))


class BicubicInterpV2Grad(InterpGrad, of=BicubicInterpV2):
    """Out@GRAD goes back to the elements of X with their weights in bicubic_interp_v2."""
