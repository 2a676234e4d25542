"""linear_interp_v2, nearest, bilinear, bicubic and trilinear, and their gradients: all of the ops but their kernels."""

from __future__ import annotations

from oprack_nn.ops._interp import InterpGrad, InterpV2


class LinearInterpV2(InterpV2, type="linear_interp_v2"):
    r"""$$Out_i = (1 - d) X_{\lfloor s \rfloor} + d X_{\lfloor s \rfloor + 1}$$ with d = s - \lfloor s \rfloor.

    X is [N, C, W]. scale, where given, decides where the samples lie.
    """


class NearestInterpV2(InterpV2, type="nearest_interp_v2"):
    r"""$$Out_{y,x} = X_{\lfloor y r_h \rfloor, \lfloor x r_w \rfloor}$$, rounded to the nearest with align_corners.

    X is [N, C, H, W]. scale, where given, decides where the samples lie.
    """


class BilinearInterpV2(InterpV2, type="bilinear_interp_v2"):
    """Linear interpolation along H and W.

    X is [N, C, H, W]. scale, where given, decides where the samples lie.
    """


class BicubicInterpV2(InterpV2, type="bicubic_interp_v2"):
    """Cubic convolution (a = -0.75) along H and W.

    X is [N, C, H, W]. scale, where given, decides where the samples lie.
    """


class TrilinearInterpV2(InterpV2, type="trilinear_interp_v2"):
    """Linear interpolation along D, H and W.

    X is [N, C, D, H, W]. scale, where given, decides where the samples lie.
    """


class LinearInterpV2Grad(InterpGrad, of=LinearInterpV2):
    """Out@GRAD goes back to the elements of X with their weights in linear_interp_v2."""


class NearestInterpV2Grad(InterpGrad, of=NearestInterpV2):
    """Out@GRAD goes back to the elements of X with their weights in nearest_interp_v2."""


class BilinearInterpV2Grad(InterpGrad, of=BilinearInterpV2):
    """Out@GRAD goes back to the elements of X with their weights in bilinear_interp_v2."""


class BicubicInterpV2Grad(InterpGrad, of=BicubicInterpV2):
    """Out@GRAD goes back to the elements of X with their weights in bicubic_interp_v2."""


class TrilinearInterpV2Grad(InterpGrad, of=TrilinearInterpV2):
    """Out@GRAD goes back to the elements of X with their weights in trilinear_interp_v2."""
