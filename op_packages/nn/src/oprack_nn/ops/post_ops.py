"""What may follow a convolution or product inside one kernel: activations, x -> a x + b, and the residual.

A post-op is a string: the op type and its numbers, as "hard_swish 6.0 6.0 3.0"; "residual" adds the input Residual.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache

from oprack.op import Attr, InferShapeContext
from oprack.types import AttrType

ACTIVATIONS: dict[str, tuple[str, ...]] = {
    "relu": (),
    "relu6": ("threshold",),
    "leaky_relu": ("alpha",),
    "sigmoid": (),
    "tanh": (),
    "gelu": ("approximate",),
    "swish": ("beta",),
    "silu": (),
    "hard_swish": ("threshold", "scale", "offset"),
    "hard_sigmoid": ("slope", "offset"),
    "scale": ("scale", "bias", "bias_after_scale"),
}
"""Type of an op -> its attributes, in the order of a post-op's numbers."""
# Whether the numbers are of a function that libraries have: others stay ops of their own.
_COMMON: dict[str, Callable[..., bool]] = {
    "leaky_relu": lambda alpha: alpha != 0,
    "hard_swish": lambda threshold, scale, offset: threshold == scale,
}
RESIDUAL = "residual"
CLIPPING = ("relu6", "hard_sigmoid")
"""Activations that lose NaN as post-ops."""


def encode(op_type: str, values: Sequence[float | str]) -> str | None:
    """The string of an activation with its attributes, as numbers or text; None where libraries have none like it."""
    numbers = [float(v) for v in values]
    if len(numbers) != len(ACTIVATIONS[op_type]) or not _COMMON.get(op_type, _any)(*numbers):
        return None
    return " ".join([op_type, *map(repr, numbers)])


def _any(*numbers: float) -> bool:
    return True


@lru_cache(maxsize=256)
def decode(text: str) -> tuple[str, tuple[float, ...]]:
    """(op type, values of its attributes)."""
    op_type, *numbers = text.split()
    return op_type, tuple(map(float, numbers))


def attributes(text: str) -> tuple[str, dict[str, float]]:
    """(op type, its attributes) of an activation's string."""
    op_type, numbers = decode(text)
    return op_type, dict(zip(ACTIVATIONS[op_type], numbers, strict=True))


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


def require_residual(ctx: InferShapeContext) -> None:
    """Require "residual" among the post-ops, once, if the input Residual is there, and not if it is not.

    A kernel that runs as its post-ops say would read what nobody gave otherwise.

    Args:
        ctx: The context of the op's shape rule.

    Raises:
        InvalidArgumentError: It is otherwise.
    """
    post_ops, given = list(ctx.attr("post_ops")), ctx.is_initialized("Residual")
    if post_ops.count(RESIDUAL) != given:
        expected = f"{RESIDUAL!r} once among them" if given else f"none of them to be {RESIDUAL!r}"
        there = "given" if given else "absent"
        ctx.require(False, f"post_ops is {post_ops} and the input Residual is {there}; expected {expected}")


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
