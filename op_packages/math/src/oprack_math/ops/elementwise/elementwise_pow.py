"""elementwise_pow and its gradient."""

from __future__ import annotations

from oprack.op import GradOpDef

from oprack_math.ops.elementwise._family import Elementwise, scale_y_checkpoint


class ElementwisePow(Elementwise, type="elementwise_pow"):
    r"""$$Out = X^Y$$ Integers go through float64 and are cut towards zero."""

    versions = scale_y_checkpoint("elementwise_pow")


class ElementwisePowGrad(GradOpDef, of=ElementwisePow, reads="Out@GRAD X Y"):
    r"""$$X@GRAD = Out@GRAD \cdot Y X^{Y-1},\quad Y@GRAD = Out@GRAD \cdot X^Y \ln X$$"""
