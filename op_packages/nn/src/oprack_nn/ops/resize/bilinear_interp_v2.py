"""bilinear_interp_v2: all of the op but its kernels."""

from __future__ import annotations

from oprack.op.sbp import leading

from oprack_nn.ops.resize._interp import InterpGrad, InterpV2


class BilinearInterpV2(InterpV2, type="bilinear_interp_v2"):
    r"""$$Out_{y,x} = \sum_{i,j \in \{0,1\}} |1 - i - f_y| |1 - j - f_x| X_{\lfloor s_y \rfloor + i, \lfloor s_x \rfloor
    + j}$$

    Linear interpolation along H and W: s = r (y + 0.5) - 0.5 (with align_mode 0, without align_corners) or r y, from 0
    on, and f its fraction.

    X is [N, C, H, W]. scale, where given, decides where the samples lie.
    """

    sbp = leading(("X",), ("Out",))


class BilinearInterpV2Grad(InterpGrad, of=BilinearInterpV2):
    """Out@GRAD goes back to the elements of X with their weights in bilinear_interp_v2."""
