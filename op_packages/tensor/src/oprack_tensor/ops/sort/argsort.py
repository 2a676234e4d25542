"""argsort: all of the op but its kernels."""

from __future__ import annotations

from oprack.op import Attr, GradOpDef, InferShapeContext, InferVarTypeContext, Input, OpDef, Output
from oprack.op.sbp import SbpContext, Signature, factors, letters


class Argsort(OpDef, type="argsort"):
    r"""$$Out_i = X_{Indices_i}, \quad Out_0 \le Out_1 \le \ldots$$ along a dim, or falling with `descending`; equals
    keep their order.
    """

    X = Input("Tensor of any shape.")
    Out = Output("Shape and LoD of X.")
    Indices = Output("int64, shape and LoD of X: places along `axis`.")
    axis = Attr(-1, "Along which dim; negative counts from the end.")
    descending = Attr(False, "Largest first.")

    def sbp(ctx: SbpContext) -> list[Signature]:
        names = letters(len(ctx.dim("X")))
        names[ctx.attr("axis", -1)] = None
        return factors({"X": names}, {"Out": names, "Indices": names})

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.axis("X")
        for slot in ("Out", "Indices"):
            ctx.set_dim(slot, ctx.dim("X"))
            ctx.share_lod("X", slot)

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        ctx.set_dtype("Out", ctx.dtype("X"))
        ctx.set_dtype("Indices", "int64")


class ArgsortGrad(GradOpDef, of=Argsort, reads="X Indices Out@GRAD", shape_of="X"):
    """X@GRAD holds Out@GRAD at the places Indices."""

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.axis("X")
        ctx.same_size("X", "Out@GRAD")
        ctx.same_dims("Indices", "Out@GRAD")
        ctx.set_dim("X@GRAD", ctx.dim("X"))
        ctx.share_lod("X", "X@GRAD")
