"""dropout: all of the op but its kernels."""

from __future__ import annotations

from oprack.op import Attr, GradOpDef, InferShapeContext, Input, OpDef, Output, dtype_of
from oprack.op.sbp import elementwise

from oprack_nn.ops.dropout._family import (
    FIX_SEED,
    IMPLEMENTATION_DOC,
    IMPLEMENTATIONS,
    SEED,
    drops_nothing,
    infer_mask_type,
    probability,
)


class Dropout(OpDef, type="dropout"):
    r"""Drops each element with probability p: $$Out = X \cdot Mask$$, scaled as `dropout_implementation` says.

    By default, as in Fluid, what is kept is not scaled up in training, and everything is scaled down with is_test.
    Paddle 2 and PyTorch divide by 1 - p in training: dropout_implementation="upscale_in_train", the default of
    oprack.nn.Dropout.
    """

    X = Input("Tensor of any shape.")
    Seed = Input("One int32 that overrides `seed`.", dispensable=True, extra=True)
    Out = Output("Shape and LoD of X.")
    Mask = Output("uint8, 1 where an element was kept; not written with is_test.", intermediate=True, extra=True)
    dropout_prob = probability()
    is_test = Attr(False, "Drop nothing.")
    dropout_implementation = Attr("downgrade_in_infer", IMPLEMENTATION_DOC).in_set(IMPLEMENTATIONS)
    fix_seed = FIX_SEED
    seed = SEED
    expected_kernel_type = dtype_of("X")
    infer_var_type = infer_mask_type
    identity = drops_nothing
    sbp = elementwise(("X",), ("Out", "Mask"), random=True)

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.set_dim("Out", ctx.dim("X"))
        ctx.share_lod("X", "Out")
        if not ctx.attr("is_test"):
            ctx.set_dim("Mask", ctx.dim("X"))


class DropoutGrad(GradOpDef, of=Dropout, reads="Out@GRAD Mask?", grads_of="X", like="Out@GRAD"):
    r"""$$X@GRAD = Out@GRAD \cdot Mask$$, scaled as in the forward op"""
