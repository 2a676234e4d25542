"""What may follow a convolution or product inside one primitive: activations, x -> a x + b, and the residual.

A post-op is a string: the op type and its numbers, as "hard_swish 6.0 6.0 3.0"; "residual" adds the input Residual.
onednn_eltwise, whose kernels are elsewhere, is such a row alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache

from oprack import op
from oprack.op import Attr, InferShapeContext, OpDef, empty_grad
from oprack.types import AttrType

# op type -> (attributes in order, (oneDNN's algorithm, alpha, beta) of their values)
ACTIVATIONS: dict[str, tuple[tuple[str, ...], Callable[..., tuple[str, float, float] | None]]] = {
    "relu": ((), lambda: ("relu", 0.0, 0.0)),
    "relu6": (("threshold",), lambda threshold: ("clip_v2", 0.0, threshold)),
    "leaky_relu": (("alpha",), lambda alpha: ("relu", alpha, 0.0) if alpha else None),
    "sigmoid": ((), lambda: ("logistic", 0.0, 0.0)),
    "tanh": ((), lambda: ("tanh", 0.0, 0.0)),
    "gelu": (("approximate",), lambda approximate: ("gelu_tanh" if approximate else "gelu_erf", 0.0, 0.0)),
    "swish": (("beta",), lambda beta: ("swish", beta, 0.0)),
    "silu": ((), lambda: ("swish", 1.0, 0.0)),
    "hard_swish": (
        ("threshold", "scale", "offset"),
        lambda threshold, scale, offset: ("hardswish", 1 / scale, offset / scale) if threshold == scale else None,
    ),
    "hard_sigmoid": (("slope", "offset"), lambda slope, offset: ("hardsigmoid", slope, offset)),
    "scale": (
        ("scale", "bias", "bias_after_scale"),
        lambda scale, bias, after: ("linear", scale, bias if after else scale * bias),
    ),
}
RESIDUAL = "residual"
CLIPPING = ("relu6", "hard_sigmoid")
"""Activations that lose NaN as post-ops."""


def encode(op_type: str, values: Sequence[float | str]) -> str | None:
    """The string of an activation with its attributes, as numbers or text; None when oneDNN does not compute it."""
    numbers = [float(v) for v in values]
    if ACTIVATIONS[op_type][1](*numbers) is None:
        return None
    return " ".join([op_type, *map(repr, numbers)])


@lru_cache(maxsize=256)
def decode(text: str) -> tuple[str, tuple[float, ...]]:
    """(op type, values of its attributes)."""
    op_type, *numbers = text.split()
    return op_type, tuple(map(float, numbers))


def algorithm(text: str) -> tuple[str, float, float]:
    """oneDNN's (algorithm, alpha, beta) of an activation's string."""
    op_type, numbers = decode(text)
    found = ACTIVATIONS[op_type][1](*numbers)
    assert found is not None  # else `encode` had made no text of it
    return found


def attributes(text: str) -> tuple[str, dict[str, float]]:
    """(op type, its attributes) of an activation's string."""
    op_type, numbers = decode(text)
    return op_type, dict(zip(ACTIVATIONS[op_type][0], numbers, strict=True))


def _valid(text: str) -> bool:
    op_type, *numbers = text.split()
    if op_type == RESIDUAL:
        return not numbers
    try:
        return op_type in ACTIVATIONS and encode(op_type, numbers) is not None
    except (TypeError, ValueError):
        return False


def _is_activation(text: str) -> bool:
    return text != RESIDUAL and _valid(text)


def post_ops_attr(residual: bool = True) -> Attr:
    """The attribute post_ops of an op. residual: whether "residual" is one of them."""
    doc = 'activations with their numbers, such as "hard_swish 6.0 6.0 3.0"'
    if not residual:
        return Attr([], f"What follows, in order: {doc}.", type=AttrType.STRINGS).each(
            _is_activation, "an op type with its numbers"
        )
    return Attr([], f'What follows, in order: "residual", or {doc}.', type=AttrType.STRINGS).each(
        _valid, "'residual' or an op type with its numbers"
    )


class OneDNNEltwise(OpDef, type="onednn_eltwise"):
    r"""$$Out = p_n(... p_1(X))$$ with element-wise functions p; made by passes, for inference."""

    X = op.Input("Any shape.")
    Out = op.Output("Shape and LoD of X.")
    post_ops = post_ops_attr(residual=False)
    make_grad = empty_grad

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.set_dim("Out", ctx.dim("X"))
        ctx.share_lod("X", "Out")
