"""elementwise_sub, with gradients to second order."""

from __future__ import annotations

from oprack.op import GradOpDef, dtype_of
from oprack.op.sbp import binary

from oprack_math.ops._broadcast import DoubleGrad
from oprack_math.ops.elementwise._family import Elementwise, scale_y_checkpoint


class ElementwiseSub(Elementwise, type="elementwise_sub"):
    r"""$$Out = X - Y$$"""

    inplace = {"X": "Out"}
    versions = scale_y_checkpoint("elementwise_sub")
    sbp = binary(linear=(("X", "Y"),))


class ElementwiseSubGrad(GradOpDef, of=ElementwiseSub, reads="Out@GRAD", shape_of="X Y"):
    r"""$$X@GRAD = Out@GRAD,\quad Y@GRAD = -Out@GRAD$$"""

    inplace = {"Out@GRAD": "X@GRAD"}


class ElementwiseSubGradGrad(
    DoubleGrad,
    of=ElementwiseSubGrad,
    reads="Y Out@GRAD X@GRAD@GRAD? Y@GRAD@GRAD?",
    shape_of="Y Out@GRAD",
    grads_of="Out@GRAD",
    attrs="axis",
):
    r"""$$DDOut = DDX - DDY$$"""

    inplace = {"DDX": "DDOut"}
    expected_kernel_type = dtype_of("DOut")
