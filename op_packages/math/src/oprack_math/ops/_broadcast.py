"""Two inputs that broadcast: Fluid's rule with its `axis`, and the slots of what has a second gradient."""

from __future__ import annotations

from oprack.errors import InvalidArgumentError
from oprack.op import Attr, GradOpDef, InferShapeContext, Input, OpDef, Output, empty_grad
from oprack.op.sbp import binary


def aligned(x: tuple[int, ...], y: tuple[int, ...], axis: int, op_type: str) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Both shapes at the same rank: the shorter one's dims start at dim `axis` of the longer one, 1 elsewhere.

    axis -1 aligns the last dims. Trailing dims of 1 that do not fit are dropped (programs before 2.0 rely on it), and
    those of -1, which can only be 1 in a run.
    Raises InvalidArgumentError when the shorter one does not fit at `axis`.
    """
    long, short = (x, y) if len(x) >= len(y) else (y, x)
    if len(long) == len(short):
        return x, y
    start = len(long) - len(short) if axis == -1 else axis
    dims = list(short)
    while len(dims) + start > len(long) and dims and dims[-1] in (1, -1):
        dims.pop()
    if start < 0 or len(dims) + start > len(long):
        raise InvalidArgumentError(
            f"op {op_type}: X has shape {list(x)}, Y has shape {list(y)} and axis is {axis}; expected an axis between "
            f"0 and {len(long) - len(short)} at which the dims of the smaller one start, or -1 to align the last dims"
        )
    short = (1,) * start + tuple(dims) + (1,) * (len(long) - start - len(dims))
    return (x, short) if len(x) >= len(y) else (short, y)


def broadcast_dims(x: tuple[int, ...], y: tuple[int, ...], axis: int, op_type: str) -> tuple[int, ...]:
    """Shape of a binary op's result; a dim of -1 takes the other's dim unless that is 1.

    Raises InvalidArgumentError when the shapes can't be broadcast.
    """
    if x == y:
        return x
    out = []
    for a, b in zip(*aligned(tuple(x), tuple(y), axis, op_type), strict=True):
        if a != b and 1 not in (a, b) and -1 not in (a, b):
            raise InvalidArgumentError(
                f"op {op_type}: X has shape {list(x)} and Y has shape {list(y)} (axis {axis}); expected dims that are "
                f"equal or 1 where they meet, not {a} and {b}"
            )
        out.append(b if a == 1 else a if b == 1 or a == b else max(a, b))
    return tuple(out)


def broadcast_last(ctx: InferShapeContext, x: str = "X", y: str = "Y", out: str = "Out") -> None:
    """Shape rule of an op whose two inputs broadcast at their last dims; LoD of the first one."""
    ctx.set_dim(out, broadcast_dims(ctx.dim(x), ctx.dim(y), -1, ctx.op_type))
    ctx.share_lod(x, out)


class Aligned(OpDef):
    """A function of two inputs that broadcast at their last dims."""

    X = Input("Tensor of any shape.")
    Y = Input("Tensor whose shape broadcasts with X's.")
    Out = Output("The broadcast shape, LoD of X.")

    sbp = binary()

    def infer_shape(ctx: InferShapeContext) -> None:
        broadcast_last(ctx)


class Binary(Aligned):
    """An element-wise function of two inputs that broadcast at the dim `axis`."""

    axis = Attr(-1, "Dim of the input of higher rank at which the dims of the other start; -1 aligns the last dims.")

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.set_dim("Out", broadcast_dims(ctx.dim("X"), ctx.dim("Y"), ctx.attr("axis"), ctx.op_type))
        ctx.share_lod("X", "Out")


class AlignedBinary(Aligned):
    """One that has no gradient."""

    inplace = {"X": "Out"}
    make_grad = empty_grad


class DoubleGrad(
    GradOpDef,
    names={"Out@GRAD": "DOut"},
    grad_names={"X@GRAD": "DDX", "Y@GRAD": "DDY", "Out@GRAD": "DDOut"},
):
    """Gradient of the gradient of a binary op, as Fluid calls its slots; an absent DDX or DDY counts as zero."""
