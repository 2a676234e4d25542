"""What squeeze and squeeze2 share."""

from __future__ import annotations

from oprack.op import Attr, InferShapeContext, Input, OpDef, Output
from oprack.op.sbp import SbpContext, Signature, factors, merged_names
from oprack.types import AttrType

from oprack_tensor.dims import given_ints, squeeze_axes


class SqueezeOp(OpDef):
    """Out is X without those of its dims `axes` that have size 1; without all such dims when `axes` is empty."""

    X = Input("Tensor of any shape.")
    Out = Output("X squeezed; LoD of X while the first dim stays.")
    axes = Attr([], "Dims to remove; negative ones count from the end.", type=AttrType.INTS)
    inplace = {"X": "Out"}

    def sbp(ctx: SbpContext) -> list[Signature]:
        dims, axes = ctx.dim("X"), ctx.attr("axes", [])
        if not all(isinstance(a, int) for a in axes):
            return []
        before, after, shared = merged_names(dims, ctx.dim("Out"))
        gone = list(squeeze_axes(ctx.op_type, dims, axes))
        if not gone and dims:
            # One has to be named, since none stands for all of size 1, as parts may have: a dim that is never split.
            gone = [dims.index(min(n for n in dims if n != 1))]
            before[gone[0]] = after[gone[0]] = None
        return factors({"X": before}, {"Out": after}, linear=(("X",),), shared=shared, attrs={"axes": gone})

    def infer_shape(ctx: InferShapeContext) -> None:
        dims, axes = ctx.dim("X"), given_ints(ctx, "axes")
        if any(a is None for a in axes):
            out = (-1,) * (len(dims) - len(axes))
        else:
            gone = squeeze_axes(ctx.op_type, dims, axes)
            if not ctx.guesses and any(dims[a] < 0 for a in axes or range(len(dims))):
                return
            out = tuple(d for i, d in enumerate(dims) if i not in gone)
        ctx.set_dim("Out", out)
        if dims and out and dims[0] == out[0]:
            ctx.share_lod("X", "Out")
