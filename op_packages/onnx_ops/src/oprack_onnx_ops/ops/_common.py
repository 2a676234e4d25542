"""What definitions of several families share."""

from __future__ import annotations

from collections.abc import Sequence

from oprack.op import Attr, InferShapeContext, InferVarTypeContext, OpDef
from oprack.types import AttrType


class OnnxOp(OpDef):
    """An op whose slots and attributes have the names that ONNX gives them.

    What an op of ONNX takes as an input although it is a parameter, such as axes, its op here takes as an input, too.
    Shapes that follow from the values of such inputs are known when the op runs.
    """

    def infer_shape(ctx: InferShapeContext) -> None:
        """Nothing is known before the kernel ran."""


def optional_ints(doc: str) -> Attr:
    """A list of integers that may be absent."""
    return Attr([], doc, type=AttrType.INTS)


def numbers(ctx: InferShapeContext, slot: str) -> list[int] | None:
    """The values of a small input as a list; None where the input is absent or its values are not known yet."""
    value = ctx.value(slot) if ctx.has_input(slot) and ctx.is_initialized(slot) else None
    return None if value is None else [int(v) for v in value.reshape(-1)]


def same_shape(ctx: InferShapeContext, source: str, *targets: str) -> None:
    """Outputs with the shape of an input."""
    for target in targets:
        if ctx.has_output(target):
            ctx.set_dim(target, ctx.dim(source))


def dtypes(ctx: InferVarTypeContext, **named: object) -> None:
    """Set the dtypes of outputs that are there."""
    for slot, dtype in named.items():
        if ctx.has_output(slot):
            ctx.set_dtype(slot, dtype)


def front_axis(axis: int, dims: Sequence[int]) -> int:
    """An axis counted from the front."""
    return axis + len(dims) if axis < 0 else axis
