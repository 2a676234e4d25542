"""trilinear_interp: all of the op but its kernels."""

from __future__ import annotations

from oprack.op.sbp import leading

from oprack_nn.ops.resize._interp import InterpGrad, InterpV1


class TrilinearInterp(InterpV1, type="trilinear_interp"):
    r"""$$Out_{z,y,x} = \sum_{h,i,j \in \{0,1\}} |1 - h - f_z| |1 - i - f_y| |1 - j - f_x| X_{\lfloor s_z \rfloor + h,
    \lfloor s_y \rfloor + i, \lfloor s_x \rfloor + j}$$

    Linear interpolation along D, H and W: s = r (y + 0.5) - 0.5 (with align_mode 0, without align_corners) or r y, from
    0 on, and f its fraction.

    X is [N, C, D, H, W]. The ratio of the sizes decides where the samples lie.
    """

    sbp = leading(("X",), ("Out",))


class TrilinearInterpGrad(InterpGrad, of=TrilinearInterp):
    """Out@GRAD goes back to the elements of X with their weights in trilinear_interp."""
