"""bicubic_interp: all of the op but its kernels."""

from __future__ import annotations

from oprack.op.sbp import leading

from oprack_nn.ops.resize._interp import InterpGrad, InterpV1


class BicubicInterp(InterpV1, type="bicubic_interp"):
    r"""$$Out_{y,x} = \sum_{i,j=-1}^{2} k(i - f_y) k(j - f_x) X_{\lfloor s_y \rfloor + i, \lfloor s_x \rfloor + j}$$,
    places cut to X.

    Cubic convolution along H and W (Keys, 1981): s = r (y + 0.5) - 0.5, or r y with align_corners, f its fraction, and
    $$k(t) = (a + 2)|t|^3 - (a + 3)|t|^2 + 1$$ up to 1, $$a|t|^3 - 5a|t|^2 + 8a|t| - 4a$$ up to 2, with a = -0.75.

    X is [N, C, H, W]. The ratio of the sizes decides where the samples lie.
    """

    sbp = leading(("X",), ("Out",))


class BicubicInterpGrad(InterpGrad, of=BicubicInterp):
    """Out@GRAD goes back to the elements of X with their weights in bicubic_interp."""
