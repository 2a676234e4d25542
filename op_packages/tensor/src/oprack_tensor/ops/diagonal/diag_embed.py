"""diag_embed: all of the op but its kernel."""

from __future__ import annotations

from oprack.op import Attr, InferShapeContext, Input, OpDef, Output, empty_grad, normal_axis
from oprack.op.sbp import SbpContext, Signature, factors, letters

from oprack_tensor.ops.diagonal._family import OFFSET


class DiagEmbed(OpDef, type="diag_embed"):
    r"""$$Out_{\dots, i, \dots, i + offset, \dots} = Input_{\dots, i}$$ and 0 elsewhere; Paddle gives it no gradient."""

    Input_ = Input("Tensor of rank 1 or more, diagonals along its last dim.")
    Out = Output("Input's shape without its last dim, and two of the matrices' size as dim1 and dim2.")
    offset = OFFSET
    dim1 = Attr(-2, "Dim of Out for the rows.")
    dim2 = Attr(-1, "Dim of Out for the columns.")
    make_grad = empty_grad

    def sbp(ctx: SbpContext) -> list[Signature]:
        names = letters(len(ctx.dim("Input")) - 1)
        out = list(names)
        for axis in sorted(normal_axis(ctx.op_type, ctx.attr(a), len(names) + 2, a) for a in ("dim1", "dim2")):
            out.insert(axis, None)
        return factors({"Input": [*names, None]}, {"Out": out}, linear=(("Input",),))

    def infer_shape(ctx: InferShapeContext) -> None:
        dims = ctx.dim("Input")
        ctx.require(len(dims) >= 1, "Input has no dims; expected rank 1 or more")
        one, two = (normal_axis(ctx.op_type, ctx.attr(a), len(dims) + 1, a) for a in ("dim1", "dim2"))
        ctx.require(one != two, f"dim1 and dim2 both name dim {one} of Out; expected two dims")
        out, size = list(dims[:-1]), -1 if dims[-1] < 0 else dims[-1] + abs(ctx.attr("offset"))
        for axis in sorted((one, two)):
            out.insert(axis, size)
        ctx.set_dim("Out", out)
