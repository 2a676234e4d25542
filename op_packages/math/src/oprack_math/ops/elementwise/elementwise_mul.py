"""elementwise_mul, with gradients to third order."""

from __future__ import annotations

from oprack.op import GradOpDef
from oprack.op.sbp import binary

from oprack_math.ops._broadcast import DoubleGrad
from oprack_math.ops.elementwise._family import Elementwise, scale_y_checkpoint


class ElementwiseMul(Elementwise, type="elementwise_mul"):
    r"""$$Out = X \cdot Y$$ X may be SelectedRows; then Y holds one element."""

    versions = scale_y_checkpoint("elementwise_mul")
    sbp = binary(linear=(("X",), ("Y",)))


class ElementwiseMulGrad(GradOpDef, of=ElementwiseMul, reads="Out@GRAD X Y"):
    r"""$$X@GRAD = Out@GRAD \cdot Y,\quad Y@GRAD = Out@GRAD \cdot X$$"""


class ElementwiseMulGradGrad(
    DoubleGrad,
    of=ElementwiseMulGrad,
    reads="X Y Out@GRAD X@GRAD@GRAD? Y@GRAD@GRAD?",
    grads_of="X Y Out@GRAD",
    attrs="axis",
):
    r"""$$DDOut = DDX \cdot Y + X \cdot DDY,\quad X@GRAD = DOut \cdot DDY,\quad Y@GRAD = DOut \cdot DDX$$"""

    inplace = {"DDX": "DDOut"}


class ElementwiseMulTripleGrad(
    GradOpDef,
    of=ElementwiseMulGradGrad,
    type="elementwise_mul_triple_grad",
    like={"DDX": "X", "DDY": "Y"},
    reads="X Y DOut DDX DDY X@GRAD@GRAD? Y@GRAD@GRAD? DDOut@GRAD?",
    grad_names={
        "DDOut": "D_DDOut",
        "X@GRAD": "D_DX",
        "Y@GRAD": "D_DY",
        "DDX": "D_DDX",
        "DDY": "D_DDY",
        "DOut": "D_DOut",
        "X": "D_X",
        "Y": "D_Y",
    },
):
    r"""Gradient of elementwise_mul_grad_grad.

    $$D\_X = D\_DDOut \cdot DDY,\quad D\_Y = D\_DDOut \cdot DDX,\quad D\_DOut = D\_DX \cdot DDY + D\_DY \cdot DDX$$
    $$D\_DDX = D\_DY \cdot DOut + D\_DDOut \cdot Y,\quad D\_DDY = D\_DX \cdot DOut + D\_DDOut \cdot X$$
    """
