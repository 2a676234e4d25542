"""complex and its gradient."""

from __future__ import annotations

from oprack.op import GradOpDef, InferVarTypeContext, dtype_of

from oprack_math.ops._broadcast import Aligned
from oprack_math.ops.complex._family import set_complex


class Complex(Aligned, type="complex"):
    r"""$$Out = X + i Y$$"""

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        set_complex(ctx, "X", "Out")


class ComplexGrad(GradOpDef, of=Complex, reads="Out@GRAD", shape_of="X Y"):
    r"""$$X@GRAD = \operatorname{Re} Out@GRAD,\quad Y@GRAD = \operatorname{Im} Out@GRAD$$"""

    expected_kernel_type = dtype_of("X")
