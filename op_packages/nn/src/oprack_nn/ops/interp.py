"""linear_interp, nearest, bilinear, bicubic and trilinear, and their gradients: all of the ops but their kernels."""

from __future__ import annotations

from oprack_nn.ops._interp import InterpGrad, InterpV1


class LinearInterp(InterpV1, type="linear_interp"):
    r"""$$Out_i = (1 - d) X_{\lfloor s \rfloor} + d X_{\lfloor s \rfloor + 1}$$ with d = s - \lfloor s \rfloor.

    X is [N, C, W]. The ratio of the sizes decides where the samples lie.
    """


class NearestInterp(InterpV1, type="nearest_interp"):
    r"""$$Out_{y,x} = X_{\lfloor y r_h \rfloor, \lfloor x r_w \rfloor}$$, rounded to the nearest with align_corners.

    X is [N, C, H, W]. The ratio of the sizes decides where the samples lie.
    """


class BilinearInterp(InterpV1, type="bilinear_interp"):
    """Linear interpolation along H and W.

    X is [N, C, H, W]. The ratio of the sizes decides where the samples lie.
    """


class BicubicInterp(InterpV1, type="bicubic_interp"):
    """Cubic convolution (a = -0.75) along H and W.

    X is [N, C, H, W]. The ratio of the sizes decides where the samples lie.
    """


class TrilinearInterp(InterpV1, type="trilinear_interp"):
    """Linear interpolation along D, H and W.

    X is [N, C, D, H, W]. The ratio of the sizes decides where the samples lie.
    """


class LinearInterpGrad(InterpGrad, of=LinearInterp):
    """Out@GRAD goes back to the elements of X with their weights in linear_interp."""


class NearestInterpGrad(InterpGrad, of=NearestInterp):
    """Out@GRAD goes back to the elements of X with their weights in nearest_interp."""


class BilinearInterpGrad(InterpGrad, of=BilinearInterp):
    """Out@GRAD goes back to the elements of X with their weights in bilinear_interp."""


class BicubicInterpGrad(InterpGrad, of=BicubicInterp):
    """Out@GRAD goes back to the elements of X with their weights in bicubic_interp."""


class TrilinearInterpGrad(InterpGrad, of=TrilinearInterp):
    """Out@GRAD goes back to the elements of X with their weights in trilinear_interp."""
