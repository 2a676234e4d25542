"""Definitions of dropout."""

from __future__ import annotations

from oprack.op import (
    Attr,
    GradOpDef,
    IdentityContext,
    InferShapeContext,
    InferVarTypeContext,
    Input,
    OpDef,
    Output,
    dtype_of,
)
from oprack.op.sbp import elementwise
from oprack.types import AttrType
from oprack_math.composition import masked

# What dropout and dropout_nd share: attributes, types, when they do nothing.
_PROBABILITY = "Probability that an element is dropped; may come from a tensor."

IMPLEMENTATIONS = ("downgrade_in_infer", "upscale_in_train")

IMPLEMENTATION_DOC = (
    "downgrade_in_infer: train X * Mask, test X * (1 - p). upscale_in_train: train X * Mask / (1 - p), test X."
)

FIX_SEED = Attr(False, "Draw with `seed` on every run.", extra=True)

SEED = Attr(0, "Seed when fix_seed is true.", extra=True)


def infer_mask_type(ctx: InferVarTypeContext) -> None:
    """Out of the dtype of X, Mask of uint8."""
    ctx.set_dtype("Out", ctx.dtype("X"))
    ctx.set_dtype("Mask", "uint8")


def probability() -> Attr:
    """The attribute dropout_prob."""
    return Attr(0.5, _PROBABILITY, support_tensor=True).check(
        lambda p: isinstance(p, str) or 0.0 <= p <= 1.0, "a value between 0.0 and 1.0"
    )


def drops_nothing(ctx: IdentityContext) -> bool:
    """Whether Out is X: in inference, where nothing has to be scaled."""
    unscaled = ctx.attr("dropout_implementation") == "upscale_in_train" or ctx.attr("dropout_prob") == 0
    return ctx.attr("is_test") and unscaled


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

    make_grad = masked


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

    make_grad = masked
