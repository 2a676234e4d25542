"""index_select: all of the op but its kernels."""

from __future__ import annotations

from oprack.op import Attr, GradOpDef, InferShapeContext, Input, OpDef, Output, dtype_of, normal_axis
from oprack.op.sbp import SbpContext, Signature, factors, letters


class IndexSelect(OpDef, type="index_select"):
    r"""$$Out_{..., i, ...} = X_{..., Index_i, ...}$$ along dim `dim`."""

    X = Input("Tensor of rank 1 or more.")
    Index = Input("int32 or int64 [n]; negative counts from the end of the dim.")
    Out = Output("X with n in place of dim `dim`; LoD of X.")
    dim = Attr(0, "Dim to pick along; negative counts from the end.")
    expected_kernel_type = dtype_of("X")

    def sbp(ctx: SbpContext) -> list[Signature]:
        names = letters(len(ctx.dim("X")))
        axis = ctx.attr("dim", 0) % len(names)
        names[axis] = None
        return factors(
            {"X": names, "Index": ["rows"]}, {"Out": [*names[:axis], "rows", *names[axis + 1 :]]}, linear=(("X",),)
        )

    def infer_shape(ctx: InferShapeContext) -> None:
        dims, (n, *_) = ctx.dim("X"), ctx.require_rank("Index", 1, 2)
        axis = normal_axis(ctx.op_type, ctx.attr("dim"), len(dims), "dim")
        ctx.set_dim("Out", (*dims[:axis], n, *dims[axis + 1 :]))
        ctx.share_lod("X", "Out")


class IndexSelectGrad(GradOpDef, of=IndexSelect, reads="Index", shape_of="X", grads_of="X", linear=True):
    """Adds each part of Out@GRAD to the place of X@GRAD that it came from."""
