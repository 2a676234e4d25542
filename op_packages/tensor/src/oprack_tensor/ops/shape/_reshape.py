"""What reshape and reshape2 share."""

from __future__ import annotations

from oprack.op import Attr, IdentityContext, InferShapeContext, Input, OpDef, Output, dtype_of
from oprack.op.families import USE_MKLDNN
from oprack.op.sbp import SbpContext, Signature, factors, merged_names
from oprack.types import AttrType

from oprack_tensor.dims import given_ints, reshape_dims


class ReshapeOp(OpDef):
    """Out holds X's elements in the shape `shape`: 0 copies a dim of X, one -1 takes what is left."""

    X = Input("Tensor of any shape.")
    Shape = Input("int32 or int64 [n], overrides `shape`.", dispensable=True)
    ShapeTensor = Input("n one-element tensors, override Shape and `shape`.", dispensable=True, duplicable=True)
    Out = Output("X in the new shape; LoD of X.")
    shape = Attr([], "New shape.", type=AttrType.INTS)
    use_mkldnn = USE_MKLDNN
    inplace = {"X": "Out"}
    expected_kernel_type = dtype_of("X")

    def sbp(ctx: SbpContext) -> list[Signature]:
        if ctx.has("Shape") or ctx.has("ShapeTensor"):
            return []
        before, after, shared = merged_names(ctx.dim("X"), ctx.dim("Out"))
        return factors({"X": before}, {"Out": after}, linear=(("X",),), sizes={"shape": "Out"}, shared=shared)

    def infer_shape(ctx: InferShapeContext) -> None:
        shape = given_ints(ctx, "shape", "" if ctx.has_input("ShapeTensor") else "Shape", "ShapeTensor")
        ctx.set_dim("Out", reshape_dims(ctx.op_type, ctx.dim("X"), shape))
        ctx.share_lod("X", "Out")

    def identity(ctx: IdentityContext) -> bool:
        dims, shape = ctx.dim("X"), ctx.attr("shape")
        if ctx.has_input("Shape") or ctx.has_input("ShapeTensor") or len(dims) != len(shape):
            return False
        return all(new in (0, -1) or new == old for new, old in zip(shape, dims, strict=True))
