"""flip: all of the op but its kernel."""

from __future__ import annotations

from oprack.op import REQUIRED, Attr, ForwardOp, GradOp, InferShapeContext, Input, OpDef, OpVersion, Output
from oprack.op.sbp import all_but
from oprack.types import AttrType


class Flip(OpDef, type="flip"):
    r"""$$Out_{\ldots, i_a, \ldots} = X_{\ldots, n_a - 1 - i_a, \ldots}$$ along each dim a of `axis`, whose
    size is n_a.
    """

    X = Input("Tensor of any shape.")
    Out = Output("Shape and LoD of X.")
    axis = Attr(REQUIRED, "Dims to reverse; negative ones count from the end.", type=AttrType.INTS)
    versions = OpVersion("flip").checkpoint(
        "The dims to reverse are named axis.", ("new_attr", "axis", None), ("delete_attr", "dims", None)
    )
    sbp = all_but("axis")

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.axes("X")
        ctx.set_dim("Out", ctx.dim("X"))
        ctx.share_lod("X", "Out")

    def make_grad(fwd: ForwardOp) -> GradOp:
        return GradOp("flip", X=fwd.output_grad("Out"), Out=fwd.input_grad("X"), attrs=fwd.attrs)
