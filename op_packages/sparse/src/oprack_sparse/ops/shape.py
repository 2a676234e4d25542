"""Ops that move elements."""

from __future__ import annotations

import math

from oprack.op import REQUIRED, Attr, GradOpDef, InferShapeContext, Input, OpDef, Output, dtype_of
from oprack.types import AttrType


# What ops that move elements share.
class MovedGrad(GradOpDef, reads="x", grads_of="x"):
    """Gradient of an op that moves elements: x takes each from where its element went."""


# sparse_reshape and its gradient.
class SparseReshape(OpDef, type="sparse_reshape"):
    r"""$$out_j = x_i$$ where i and j have the same place in row-major order; dense dims stay as they are."""

    x = Input("Sparse tensor.")
    ShapeTensor = Input("The dims, instead of `shape`.", dispensable=True)
    ShapeTensorList = Input("One-element tensors for the dims, instead of `shape`.", dispensable=True, duplicable=True)
    out = Output("Sparse tensor of x's layout.")
    shape = Attr(REQUIRED, "Dims of out; 0 keeps that of x, one may be -1.", type=AttrType.LONGS)
    expected_kernel_type = dtype_of("x")

    def infer_shape(ctx: InferShapeContext) -> None:
        dims = ctx.dim("x")
        if ctx.has_input("ShapeTensor") or ctx.has_input("ShapeTensorList"):
            if not ctx.is_runtime:
                return
            given = _given(ctx)
        else:
            given = list(ctx.attr("shape"))
        if not dims and not ctx.is_runtime:
            return
        ctx.set_dim("out", target_dims(ctx, dims, given))


def _given(ctx: InferShapeContext) -> list[int]:
    if ctx.has_input("ShapeTensor"):
        return [int(v) for v in ctx.value("ShapeTensor").reshape(-1)]
    return [int(ctx.scalar("ShapeTensorList", i)) for i in range(ctx.input_count("ShapeTensorList"))]


def target_dims(ctx: InferShapeContext, dims: tuple[int, ...], given: list[int]) -> list[int]:
    """The dims of the result, with 0 and -1 replaced by what they stand for where that is known."""
    kept = all(d != 0 or i < len(dims) for i, d in enumerate(given))
    ctx.require(kept and given.count(-1) <= 1, f"shape is {given}, x has shape {list(dims)}; expected one -1 at most")
    found = [dims[i] if d == 0 else d for i, d in enumerate(given)]
    if min(dims, default=0) < 0:
        return found
    size, rest = math.prod(dims), math.prod(d for d in found if d != -1)
    fits = size % rest == 0 if -1 in found and rest else size == rest
    ctx.require(fits, f"shape is {given}, x has shape {list(dims)}; expected as many elements")
    return [size // max(rest, 1) if d == -1 else d for d in found]


class SparseReshapeGrad(MovedGrad, of=SparseReshape, attrs=""):
    r"""$$x@GRAD_i = out@GRAD_j$$ where x lists an element."""


# sparse_slice and its gradient.
def _tensors(what: str) -> tuple[Input, Input]:
    one = Input(f"{what}, instead of the attribute.", dispensable=True)
    return one, Input(f"{what} as one-element tensors.", dispensable=True, duplicable=True)


class SparseSlice(OpDef, type="sparse_slice"):
    r"""$$out_j = x_{j + starts}$$ along `axes`, of what lies before `ends`."""

    x = Input("Sparse tensor.")
    AxesTensor, AxesTensorList = _tensors("Axes")
    StartsTensor, StartsTensorList = _tensors("Starts")
    EndsTensor, EndsTensorList = _tensors("Ends")
    out = Output("Sparse tensor of x's layout.")
    axes = Attr(REQUIRED, "Dims to cut.", type=AttrType.LONGS)
    starts = Attr(REQUIRED, "First index along each; negative from the end.", type=AttrType.LONGS)
    ends = Attr(REQUIRED, "Index after the last one.", type=AttrType.LONGS)
    expected_kernel_type = dtype_of("x")

    def infer_shape(ctx: InferShapeContext) -> None:
        dims, given = list(ctx.dim("x")), [_sparse_slice_given(ctx, name) for name in ("axes", "starts", "ends")]
        if any(g is None for g in given) or (not dims and not ctx.is_runtime):
            return
        axes, starts, ends = (list(g or ()) for g in given)
        fits = len(axes) == len(starts) == len(ends) and all(-len(dims) <= a < len(dims) for a in axes)
        ctx.require(
            fits, f"axes {axes}, starts {starts}, ends {ends} of x {list(dims)}; expected one of each for a dim"
        )
        for axis, start, end in zip(axes, starts, ends, strict=True):
            if dims[axis] >= 0:
                first, last, _ = slice(start, end).indices(dims[axis])
                dims[axis] = max(last - first, 0)
        ctx.set_dim("out", dims)


def _sparse_slice_given(ctx: InferShapeContext, name: str) -> list[int] | None:
    """The numbers for an attribute; None when only a run knows them."""
    one = name.title() + "Tensor"
    if not ctx.has_input(one) and not ctx.has_input(one + "List"):
        return list(ctx.attr(name))
    if not ctx.is_runtime:
        return None
    if ctx.has_input(one):
        return [int(v) for v in ctx.value(one).reshape(-1)]
    return [int(ctx.scalar(one + "List", i)) for i in range(ctx.input_count(one + "List"))]


class SparseSliceGrad(
    MovedGrad,
    of=SparseSlice,
    reads="x AxesTensor AxesTensorList StartsTensor StartsTensorList EndsTensor EndsTensorList",
):
    r"""$$x@GRAD_{j + starts} = out@GRAD_j$$ where x lists an element, zero outside."""

    expected_kernel_type = dtype_of("x")


# sparse_transpose and its gradient.
class SparseTranspose(OpDef, type="sparse_transpose"):
    r"""$$out_{i_{perm_0}, i_{perm_1}, \ldots} = x_{i_0, i_1, \ldots}$$"""

    x = Input("Sparse tensor.")
    out = Output("Sparse tensor of x's layout: in COO, elements in x's order, in CSR sorted.")
    perm = Attr(REQUIRED, "Which dim of x each dim of out is; dense dims stay behind sparse ones.", type=AttrType.INTS)

    def infer_shape(ctx: InferShapeContext) -> None:
        dims, perm = ctx.dim("x"), [p % max(len(ctx.dim("x")), 1) for p in ctx.attr("perm")]
        if dims or ctx.is_runtime:
            right = sorted(perm) == list(range(len(dims)))
            ctx.require(right, f"perm is {list(ctx.attr('perm'))}, x has shape {list(dims)}; expected each dim once")
            ctx.set_dim("out", [dims[p] for p in perm])


class SparseTransposeGrad(MovedGrad, of=SparseTranspose):
    r"""$$x@GRAD_{i_0, i_1, \ldots} = out@GRAD_{i_{perm_0}, i_{perm_1}, \ldots}$$ where x lists an element."""
