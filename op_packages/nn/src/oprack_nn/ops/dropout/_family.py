"""What dropout and dropout_nd share: attributes, types, when they do nothing."""

from __future__ import annotations

from oprack.op import Attr, IdentityContext, InferVarTypeContext

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
