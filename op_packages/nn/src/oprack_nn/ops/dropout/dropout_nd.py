"""dropout_nd: all of the op but its kernels."""

from __future__ import annotations

from oprack.op import Attr, GradOpDef, InferShapeContext, Input, OpDef, Output, dtype_of
from oprack.types import AttrType

from oprack_nn.ops.dropout._family import (
    FIX_SEED,
    IMPLEMENTATION_DOC,
    IMPLEMENTATIONS,
    SEED,
    drops_nothing,
    infer_mask_type,
    probability,
)


class DropoutNd(OpDef, type="dropout_nd"):
    r"""$$Out = X \cdot Mask$$, scaled as `dropout_implementation` says.

    As dropout, but the elements along dims that `axis` does not list are kept or dropped together.
    """

    X = Input("Tensor of any shape.")
    Seed = Input("One int32 that overrides `seed`.", dispensable=True, extra=True)
    Out = Output("Shape and LoD of X.")
    Mask = Output("uint8, 1 where kept; shape of X with 1 for dims not in `axis`.", intermediate=True, extra=True)
    dropout_prob = probability()
    is_test = Attr(False, "Drop nothing.")
    dropout_implementation = Attr("downgrade_in_infer", IMPLEMENTATION_DOC).in_set(IMPLEMENTATIONS)
    axis = Attr(
        [], "Dims along which elements are dropped on their own; along the others together.", type=AttrType.INTS
    )
    fix_seed = FIX_SEED
    seed = SEED
    expected_kernel_type = dtype_of("X")
    infer_var_type = infer_mask_type
    identity = drops_nothing

    def infer_shape(ctx: InferShapeContext) -> None:
        dims = ctx.dim("X")
        for a in ctx.attr("axis"):
            ctx.require(0 <= a < len(dims), f"axis has {a}, but X has shape {list(dims)}; expected dims of X")
        ctx.set_dim("Out", dims)
        ctx.share_lod("X", "Out")
        if not ctx.attr("is_test"):
            axes = ctx.attr("axis") or range(len(dims))
            ctx.set_dim("Mask", [n if i in axes else 1 for i, n in enumerate(dims)])


class DropoutNdGrad(GradOpDef, of=DropoutNd, reads="Out@GRAD Mask?", grads_of="X", like="Out@GRAD"):
    r"""$$X@GRAD = Out@GRAD \cdot Mask$$, scaled as in the forward op"""
