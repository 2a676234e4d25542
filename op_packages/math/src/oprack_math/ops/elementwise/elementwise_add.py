"""elementwise_add, with gradients to third order."""

from __future__ import annotations

from oprack.op import GradOpDef, dtype_of
from oprack.op.sbp import binary

from oprack_math.ops._broadcast import DoubleGrad
from oprack_math.ops.elementwise._family import Elementwise, scale_y_checkpoint


class ElementwiseAdd(Elementwise, type="elementwise_add"):
    r"""$$Out = X + Y$$"""

    inplace = {"X": "Out"}
    versions = scale_y_checkpoint("elementwise_add")
    sbp = binary(linear=(("X", "Y"),))


class ElementwiseAddGrad(GradOpDef, of=ElementwiseAdd, reads="Out@GRAD", shape_of="X Y"):
    r"""$$X@GRAD = Out@GRAD,\quad Y@GRAD = Out@GRAD$$"""

    inplace = {"Out@GRAD": "X@GRAD"}


class ElementwiseAddGradGrad(
    DoubleGrad,
    of=ElementwiseAddGrad,
    reads="Y Out@GRAD X@GRAD@GRAD? Y@GRAD@GRAD?",
    shape_of="Y Out@GRAD",
    grads_of="Out@GRAD",
):
    r"""$$DDOut = DDX + DDY$$"""

    inplace = {"DDX": "DDOut"}
    expected_kernel_type = dtype_of("DOut")


class ElementwiseAddTripleGrad(
    GradOpDef,
    of=ElementwiseAddGradGrad,
    type="elementwise_add_triple_grad",
    shape_of="DDX DDY",
    grads_of="DDX DDY",
    grad_names={"DDOut": "D_DDOut", "DDX": "D_DDX", "DDY": "D_DDY"},
):
    r"""$$D\_DDX = D\_DDOut,\quad D\_DDY = D\_DDOut$$"""

    inplace = {"D_DDOut": "D_DDX"}
