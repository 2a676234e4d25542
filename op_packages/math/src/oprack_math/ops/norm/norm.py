"""norm and its gradient."""

from __future__ import annotations

from oprack.op import REQUIRED, Attr, GradOpDef, InferShapeContext, Input, OpDef, Output
from oprack.op.sbp import SbpContext, Signature, factors, letters
from oprack.types import AttrType


class Norm(OpDef, type="norm"):
    r"""$$Norm = \sqrt{\sum_{axis} X^2 + \epsilon},\quad Out = X / Norm$$"""

    X = Input("Tensor of rank 1 or more.")
    Out = Output("Shape and LoD of X.")
    Norm_ = Output("X's shape with 1 in place of dim `axis`.", intermediate=True, extra=True)
    axis = Attr(REQUIRED, "Dim along which elements form a vector; negative counts from the end.", type=AttrType.INT)
    epsilon = Attr(1e-10, "Added to the sum of squares.")
    is_test = Attr(False, "Inference alone: Norm is not needed.")

    def sbp(ctx: SbpContext) -> list[Signature]:
        names = letters(len(ctx.dim("X")))
        axis = names[ctx.attr("axis", -1) % len(names)]
        return factors({"X": names}, {"Out": names, "Norm": [None if n == axis else n for n in names]}, no=[axis])  # type: ignore[list-item]

    def infer_shape(ctx: InferShapeContext) -> None:
        dims, axis = ctx.dim("X"), ctx.axis("X")
        ctx.set_dim("Out", dims)
        ctx.set_dim("Norm", [1 if i == axis else d for i, d in enumerate(dims)])
        ctx.share_lod("X", "Out")


class NormGrad(GradOpDef, of=Norm, reads="X Norm Out@GRAD"):
    r"""$$X@GRAD = (Out@GRAD - X \sum_{axis} X \cdot Out@GRAD / Norm^2) / Norm$$"""
