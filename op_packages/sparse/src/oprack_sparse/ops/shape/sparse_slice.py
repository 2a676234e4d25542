"""sparse_slice and its gradient."""

from __future__ import annotations

from oprack.op import REQUIRED, Attr, InferShapeContext, Input, OpDef, Output, dtype_of
from oprack.types import AttrType

from oprack_sparse.ops.shape._family import MovedGrad


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
        dims, given = list(ctx.dim("x")), [_given(ctx, name) for name in ("axes", "starts", "ends")]
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


def _given(ctx: InferShapeContext, name: str) -> list[int] | None:
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
