"""What arg_max and arg_min share: all but which element they look for."""

from __future__ import annotations

from oprack.op import REQUIRED, Attr, InferShapeContext, InferVarTypeContext, Input, OpDef, Output, empty_grad
from oprack.op.sbp import SbpContext, Signature, factors, letters
from oprack.types import AttrType


class ArgExtremum(OpDef):
    """Position of an extremum; of several, the first. NaN counts as the worst."""

    X = Input("Tensor of any shape.")
    Out = Output("Positions, X's shape without the dim `axis`; no LoD.")
    axis = Attr(REQUIRED, "Dim to search.", type=AttrType.LONG, support_tensor=True)
    keepdims = Attr(False, "Keep the dim, with size 1.")
    flatten = Attr(False, "Search all elements as one dim; axis is not read.")
    dtype = Attr(3, "dtype of Out as a number: 3 (or -1) int64, 2 int32.").in_set((-1, 2, 3))
    make_grad = empty_grad

    def sbp(ctx: SbpContext) -> list[Signature]:
        names = letters(len(ctx.dim("X")))
        axis = ctx.attr("axis", -1)
        if ctx.attr("flatten") or not names or not isinstance(axis, int):
            return []
        outs = [None if k == axis % len(names) else n for k, n in enumerate(names)]
        if len(ctx.dim("Out")) != len(names):
            outs.pop(axis % len(names))
        return factors({"X": names}, {"Out": outs}, no=[n for n in names if n not in outs and n is not None])

    def infer_shape(ctx: InferShapeContext) -> None:
        dims, axis = ctx.dim("X"), ctx.attr("axis")
        rank = len(dims)
        if ctx.attr("flatten"):
            ctx.set_dim("Out", (1,) * rank if ctx.attr("keepdims") else ())
            return
        if isinstance(axis, str):
            ctx.set_dim("Out", (-1,) * (rank if ctx.attr("keepdims") else max(rank - 1, 0)))
            return
        limit = max(rank, 1)
        ctx.require(
            -limit <= axis < limit,
            f"axis is {axis} and X has shape {list(dims)}; expected an axis between {-limit} and {limit - 1}",
        )
        if rank:
            axis %= rank
            ctx.require(dims[axis] != 0, f"X has shape {list(dims)}; expected elements along dim {axis} to choose from")
            dims = (*dims[:axis], *((1,) if ctx.attr("keepdims") else ()), *dims[axis + 1 :])
        ctx.set_dim("Out", dims)

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        ctx.set_dtype("Out", "int32" if ctx.attr("dtype") == 2 else "int64")
