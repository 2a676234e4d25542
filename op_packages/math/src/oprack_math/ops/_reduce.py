"""What reductions share: their slots and attributes, and the shape that remains."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

from oprack.op import Attr, ForwardOp, GradOp, GradOpDef, InferShapeContext, Input, OpDef, Output, dtype_of
from oprack.op.families import USE_MKLDNN
from oprack.op.sbp import reduction

DIM = Attr([0], "Dims to reduce; none means all.", support_tensor=True)
KEEP_DIM = Attr(False, "Keep reduced dims, with size 1.")
REDUCE_ALL = Attr(False, "Reduce all dims, whatever `dim` says.")
IN_DTYPE = Attr(-1, "dtype to cast X to first, as a number; -1 keeps it. The kernels cast by out_dtype.")
OUT_DTYPE = Attr(-1, "dtype of Out as a number; -1 leaves it to the op.")


def _normal_axes(ctx: InferShapeContext, dims: Sequence[int], axes: Sequence[int]) -> list[int]:
    """Normalize negative axes. Raises InvalidArgumentError if one is out of range or occurs twice."""
    rank = len(dims)
    limit = max(rank, 1)
    for a in axes:
        ctx.require(
            -limit <= a < limit,
            f"dim {a} of {list(axes)} is out of range for X of shape {list(dims)}; expected {-limit} to {limit - 1}",
        )
    chosen = [a % rank for a in axes] if rank else []
    ctx.require(
        len(set(chosen)) == len(chosen),
        f"dims {list(axes)} of X (shape {list(dims)}) name one dim twice; expected each dim once",
    )
    return chosen


def reduced_dims(
    ctx: InferShapeContext,
    dims: tuple[int, ...],
    axes: Sequence[int | str] | str,
    keep: bool,
    everything: bool,
    elements: bool = False,
) -> tuple[int, ...]:
    """The shape after a reduction.

    Args:
        ctx: The context of the shape rule.
        dims: The shape before.
        axes: The dims to reduce; while a program is built, they may be names of variables.
        keep: Whether reduced dims remain, with size 1.
        everything: Whether to reduce all dims, whatever `axes` says.
        elements: Whether the op needs at least one element (there is no maximum of nothing).

    Raises:
        InvalidArgumentError: An axis is out of range or occurs twice.
    """
    rank = len(dims)
    names = [axes] if isinstance(axes, str) else axes
    if any(isinstance(a, str) for a in names):
        return (-1,) * (rank if keep else max(rank - len(names), 0))
    if everything or not axes:
        axes = range(rank)
    chosen = _normal_axes(ctx, dims, cast("Sequence[int]", axes))
    ctx.require(
        not elements or 0 not in [dims[a] for a in chosen],
        f"X has shape {list(dims)} and dims {chosen} are reduced; expected at least one element to choose from",
    )
    if keep:
        return tuple(1 if i in chosen else d for i, d in enumerate(dims))
    return tuple(d for i, d in enumerate(dims) if i not in chosen)


class Reduce(OpDef):
    """A reduction over some dims."""

    X = Input("Tensor of any shape.")
    Out = Output("X's shape without the reduced dims; no LoD.")
    dim = DIM
    keep_dim = KEEP_DIM
    reduce_all = REDUCE_ALL
    in_dtype = IN_DTYPE
    out_dtype = OUT_DTYPE
    use_mkldnn = USE_MKLDNN

    def infer_shape(ctx: InferShapeContext) -> None:
        dims = reduced_dims(ctx, ctx.dim("X"), ctx.attr("dim"), ctx.attr("keep_dim"), ctx.attr("reduce_all"))
        ctx.set_dim("Out", dims)


class ReduceExtremum(Reduce):
    """A reduction that chooses an element."""

    sbp = reduction("other")

    def infer_shape(ctx: InferShapeContext) -> None:
        attrs = (ctx.attr(a) for a in ("dim", "keep_dim", "reduce_all"))
        ctx.set_dim("Out", reduced_dims(ctx, ctx.dim("X"), *attrs, elements=True))


class ReduceGradWithOut(GradOpDef, reads="X Out@GRAD Out"):
    """Gradient of a reduction that reads its output, whose dtype may differ from that of X."""

    expected_kernel_type = dtype_of("Out@GRAD")


def linear_double_grad(type: str) -> Callable[..., Any]:
    """make_grad of the gradient of a linear reduction: the reduction itself."""

    def make_grad(fwd: ForwardOp) -> GradOp:
        attrs = {k: v for k, v in fwd.attrs.items() if k in ("dim", "keep_dim", "reduce_all")}
        return GradOp(type, X=fwd.output_grad("X@GRAD"), Out=fwd.input_grad("Out@GRAD"), attrs=attrs)

    return make_grad
