"""unbind: all of the op but its kernel."""

from __future__ import annotations

from oprack.op import Attr, ForwardOp, GradOp, InferShapeContext, Input, OpDef, Output, normal_axis
from oprack.op.sbp import SbpContext, Signature, factors, letters


class Unbind(OpDef, type="unbind"):
    r"""$$Out[i] = X_{\ldots, i, \ldots}$$ along `axis`, without that dim."""

    X = Input("Tensor of rank 1 or more.")
    Out = Output("One tensor for each place; LoD of X unless axis is 0.", duplicable=True)
    axis = Attr(0, "Dim to take apart; negative counts from the end.")

    def sbp(ctx: SbpContext) -> list[Signature]:
        names = letters(len(ctx.dim("X")))
        axis = ctx.attr("axis", 0) % len(names)
        names[axis] = None
        return factors({"X": names}, {"Out": names[:axis] + names[axis + 1 :]}, linear=(("X",),))

    def infer_shape(ctx: InferShapeContext) -> None:
        dims, num = ctx.dim("X"), ctx.output_count("Out")
        axis = normal_axis(ctx.op_type, ctx.attr("axis"), len(dims))
        ctx.require(
            dims[axis] in (-1, num),
            f"Out has {num} variables but X {list(dims)} has {dims[axis]} places along axis {axis}; expected one each",
        )
        ctx.set_dims("Out", [(*dims[:axis], *dims[axis + 1 :])] * num)
        if axis != 0:
            for i in range(num):
                ctx.share_lod("X", "Out", 0, i)

    def make_grad(fwd: ForwardOp) -> GradOp:
        return GradOp("stack", X=fwd.output_grad("Out"), Y=fwd.input_grad("X"), attrs={"axis": fwd.attrs["axis"]})
