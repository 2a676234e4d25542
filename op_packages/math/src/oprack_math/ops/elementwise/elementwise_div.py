"""elementwise_div, with gradients to second order."""

from __future__ import annotations

from oprack.op import GradOpDef

from oprack_math.ops._broadcast import DoubleGrad
from oprack_math.ops.elementwise._family import Elementwise, scale_y_checkpoint


class ElementwiseDiv(Elementwise, type="elementwise_div"):
    r"""$$Out = X / Y$$ Integers are divided towards zero; an integer divisor of 0 is an error."""

    versions = scale_y_checkpoint("elementwise_div")


class ElementwiseDivGrad(GradOpDef, of=ElementwiseDiv, reads="Out@GRAD X Y Out"):
    r"""$$X@GRAD = Out@GRAD / Y,\quad Y@GRAD = -Out@GRAD \cdot Out / Y$$"""


class ElementwiseDivGradGrad(
    DoubleGrad,
    of=ElementwiseDivGrad,
    reads="Y Out X@GRAD? X@GRAD@GRAD? Y@GRAD@GRAD?",
    grads_of="Y Out Out@GRAD",
    like="Out",
    names={"X@GRAD": "DX"},
    grad_names={"Out": "DOut"},
    attrs="axis",
):
    r"""Gradient of elementwise_div_grad, whose input Out counts as independent of X and Y.

    $$DDOut = (DDX - Out \cdot DDY) / Y,\quad Y@GRAD = DX (Out \cdot DDY - DDX) / Y,\quad DOut = -DX \cdot DDY$$
    """

    inplace = {"DDX": "DDOut"}
