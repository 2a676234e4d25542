"""The same elements in other dims, repeated where dims grow; and what the dims are."""

from __future__ import annotations

from collections.abc import Sequence

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
    empty_grad,
    normal_axis,
)
from oprack.op.families import MKLDNN_DATA_TYPE, USE_MKLDNN
from oprack.op.sbp import SbpContext, Signature, factors, letters, merged_names, regrouped
from oprack.types import AttrType, VarType

from oprack_tensor.dims import (
    broadcast_dims,
    count_is_open,
    given_ints,
    product,
    reshape_dims,
    squeeze_axes,
    unsqueeze_dims,
)


# What flatten and flatten2 share.
def flattened(ctx: InferShapeContext) -> None:
    """Set Out to the matrix of X cut at `axis`."""
    dims, axis = ctx.dim("X"), ctx.attr("axis")
    if axis != len(dims):
        axis = normal_axis(ctx.op_type, axis, len(dims))
    out = (product(dims[:axis]), product(dims[axis:]))
    ctx.set_dim("Out", out)
    if dims and out[0] == dims[0]:
        ctx.share_lod("X", "Out")


# What reshape and reshape2 share.
class ReshapeOp(OpDef):
    """Out holds X's elements in the shape `shape`: 0 copies a dim of X, one -1 takes what is left."""

    X = Input("Tensor of any shape.")
    Shape = Input("int32 or int64 [n], overrides `shape`.", dispensable=True)
    ShapeTensor = Input("n one-element tensors, override Shape and `shape`.", dispensable=True, duplicable=True)
    Out = Output("X in the new shape; LoD of X.")
    shape = Attr([], "New shape.", type=AttrType.INTS)
    use_mkldnn = USE_MKLDNN
    inplace = {"X": "Out"}
    expected_kernel_type = dtype_of("X")

    def sbp(ctx: SbpContext) -> list[Signature]:
        if ctx.has("Shape") or ctx.has("ShapeTensor"):
            return []
        before, after, shared = merged_names(ctx.dim("X"), ctx.dim("Out"))
        return factors({"X": before}, {"Out": after}, linear=(("X",),), sizes={"shape": "Out"}, shared=shared)

    def infer_shape(ctx: InferShapeContext) -> None:
        tensor = "" if ctx.has_input("ShapeTensor") else "Shape"
        if count_is_open(ctx, tensor):
            return
        shape = given_ints(ctx, "shape", tensor, "ShapeTensor")
        ctx.set_dim("Out", reshape_dims(ctx.op_type, ctx.dim("X"), shape))
        ctx.share_lod("X", "Out")

    def identity(ctx: IdentityContext) -> bool:
        dims, shape = ctx.dim("X"), ctx.attr("shape")
        if ctx.has_input("Shape") or ctx.has_input("ShapeTensor") or len(dims) != len(shape):
            return False
        return all(new in (0, -1) or new == old for new, old in zip(shape, dims, strict=True))


# What squeeze and squeeze2 share.
class SqueezeOp(OpDef):
    """Out is X without those of its dims `axes` that have size 1; without all such dims when `axes` is empty."""

    X = Input("Tensor of any shape.")
    Out = Output("X squeezed; LoD of X while the first dim stays.")
    axes = Attr([], "Dims to remove; negative ones count from the end.", type=AttrType.INTS)
    inplace = {"X": "Out"}

    def sbp(ctx: SbpContext) -> list[Signature]:
        dims, axes = ctx.dim("X"), ctx.attr("axes", [])
        if not all(isinstance(a, int) for a in axes):
            return []
        before, after, shared = merged_names(dims, ctx.dim("Out"))
        gone = list(squeeze_axes(ctx.op_type, dims, axes))
        if not gone and dims:
            # One has to be named, since none stands for all of size 1, as parts may have: a dim that is never split.
            gone = [dims.index(min(n for n in dims if n != 1))]
            before[gone[0]] = after[gone[0]] = None
        return factors({"X": before}, {"Out": after}, linear=(("X",),), shared=shared, attrs={"axes": gone})

    def infer_shape(ctx: InferShapeContext) -> None:
        dims, axes = ctx.dim("X"), given_ints(ctx, "axes")
        known = [a for a in axes if a is not None]
        if len(known) < len(axes):
            out: tuple[int, ...] = (-1,) * (len(dims) - len(axes))
        else:
            gone = squeeze_axes(ctx.op_type, dims, known)
            if not ctx.guesses and any(dims[a] < 0 for a in known or range(len(dims))):
                return
            out = tuple(d for i, d in enumerate(dims) if i not in gone)
        ctx.set_dim("Out", out)
        if dims and out and dims[0] == out[0]:
            ctx.share_lod("X", "Out")


# What tile and expand share.
def set_tiled(ctx: InferShapeContext, name: str, given: Sequence[int | None]) -> None:
    """Shape rule of repetitions along each dim; the shorter of both is filled up with ones in front."""
    dims = ctx.dim("X")
    rank = max(len(dims), len(given))
    full, times = (1,) * (rank - len(dims)) + tuple(dims), [1] * (rank - len(given)) + list(given)
    out = [-1 if t is None or d < 0 else d * t for d, t in zip(full, times, strict=True)]
    ctx.require(all(t is None or t > 0 for t in times), f"{name} is {times}; expected positive numbers")
    ctx.set_dim("Out", out)
    if dims and out[0] == dims[0]:
        ctx.share_lod("X", "Out")


# What unsqueeze and unsqueeze2 share.
class UnsqueezeOp(OpDef):
    """Out is X with a dim of size 1 inserted for each of `axes`, one after the other."""

    X = Input("Tensor of any shape.")
    Out = Output("X with more dims; LoD of X unless a new dim comes first.")
    axes = Attr(
        [],
        "Places of the new dims in the shape made so far; negative ones count from the end.",
        type=AttrType.INTS,
    )
    inplace = {"X": "Out"}

    sbp = regrouped


def infer_shape(ctx: InferShapeContext, tensor: str = "", tensors: str = "") -> None:
    """Sets Out. tensor, tensors: slots that override `axes`."""
    if count_is_open(ctx, tensor):
        return
    dims, axes = ctx.dim("X"), given_ints(ctx, "axes", tensor, tensors)
    known = [a for a in axes if a is not None]
    unknown = len(known) < len(axes)
    ctx.set_dim("Out", (-1,) * (len(dims) + len(axes)) if unknown else unsqueeze_dims(ctx.op_type, dims, known))
    if unknown or unsqueeze_dims(ctx.op_type, (0,) * len(dims), known)[:1] == [0]:  # rows are still rows
        ctx.share_lod("X", "Out")


# Ops that hand the shape of X on to their gradient, by an output XShape.
XSHAPE = Output("Empty, [0, dims of X]: carries X's shape and LoD to the gradient.", intermediate=True, extra=True)


def keep_shape(ctx: InferShapeContext) -> None:
    """Sets XShape."""
    ctx.set_dim("XShape", (0, *ctx.dim("X")))
    ctx.share_lod("X", "XShape")


class XShapeGrad(GradOpDef, reads="Out@GRAD", shape_of="XShape", grads_of="X"):
    """Out@GRAD in the shape of X."""

    inplace = {"Out@GRAD": "X@GRAD"}

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.set_dim("X@GRAD", ctx.dim("XShape")[1:])
        ctx.share_lod("XShape", "X@GRAD")


# broadcast_tensors and its gradient.
class BroadcastTensors(OpDef, type="broadcast_tensors"):
    r"""$$Out[k]_i = X[k]_{i \text{, 0 where the dim is 1}}$$ all tensors in the one shape to which they broadcast."""

    X = Input("Tensors whose shapes broadcast.", duplicable=True)
    Out = Output("As many tensors of one shape.", duplicable=True)

    def infer_shape(ctx: InferShapeContext) -> None:
        shapes = ctx.dims("X")
        rank = max(map(len, shapes))
        out = []
        for sizes in zip(*((1,) * (rank - len(s)) + tuple(s) for s in shapes), strict=True):
            wide = {n for n in sizes if n != 1}
            ctx.require(
                len(wide - {-1}) <= 1,
                f"X has tensors of shapes {[list(s) for s in shapes]}; expected dims that are equal or 1, the last "
                "ones aligned",
            )
            out.append(max(wide, default=1))
        ctx.set_dims("Out", [out] * len(shapes))


class BroadcastTensorsGrad(GradOpDef, of=BroadcastTensors, shape_of="X"):
    """X@GRAD[k] sums the gradient of Out[k] over the dims along which X[k] was repeated."""

    expected_kernel_type = dtype_of("Out@GRAD")


# expand and its gradient.
class Expand(OpDef, type="expand"):
    r"""$$Out_{\dots, r d + i, \dots} = X_{\dots, i, \dots}$$ X of dim d, repeated expand_times[k] times along dim k, as
    tile does for as many numbers as X has dims."""

    X = Input("Tensor of rank 1 or more.")
    ExpandTimes = Input("int32 [rank of X], overrides `expand_times`.", dispensable=True)
    expand_times_tensor = Input("One-element tensors, override `expand_times`.", dispensable=True, duplicable=True)
    Out = Output("X repeated; LoD of X while the first dim stays.")
    expand_times = Attr([], "Repetitions along each dim.", type=AttrType.INTS)
    expected_kernel_type = dtype_of("X")

    def infer_shape(ctx: InferShapeContext) -> None:
        rank = len(ctx.dim("X"))
        times = given_ints(ctx, "expand_times", "ExpandTimes", "expand_times_tensor", likely=rank)
        ctx.require(
            len(times) == rank,
            f"X has shape {list(ctx.dim('X'))} and expand_times is {times}; expected one for each dim",
        )
        set_tiled(ctx, "expand_times", times)


class ExpandGrad(GradOpDef, of=Expand, shape_of="X ExpandTimes expand_times_tensor", grads_of="X", linear=True):
    """X@GRAD sums Out@GRAD over the repetitions."""


# expand_as (Paddle 1.x) and its gradient.
class ExpandAs(OpDef, type="expand_as"):
    r"""$$Out_{\dots, r d + i, \dots} = X_{\dots, i, \dots}$$ X of dim d, repeated until it has the shape of
    target_tensor, whose dims are multiples of those of X."""

    X = Input("Tensor of rank 1 to 6.")
    target_tensor = Input("Gives the shape; its values are not read.")
    Out = Output("X repeated, shape of target_tensor.")
    no_need_buffer_vars = ("target_tensor",)
    expected_kernel_type = dtype_of("X")

    def infer_shape(ctx: InferShapeContext) -> None:
        dims, target = ctx.dim("X"), ctx.dim("target_tensor")
        pairs = zip(dims, target, strict=False)
        ctx.require(
            len(dims) == len(target) and all(min(a, b) < 0 or (b % a == 0 if a else b == 0) for a, b in pairs),
            f"X has shape {list(dims)} and target_tensor {list(target)}; expected equal ranks, and dims of "
            "target_tensor that are multiples of those of X",
        )
        ctx.set_dim("Out", target)


class ExpandAsGrad(GradOpDef, of=ExpandAs, shape_of="X target_tensor", grads_of="X"):
    """X@GRAD sums Out@GRAD over the repetitions."""


class ExpandAsV2(OpDef, type="expand_as_v2"):
    r"""$$Out_{i} = X_{i'}$$ where i' is i in the dims of X, and 0 where X has size 1: X broadcast to the shape of Y, or
    to `target_shape`.
    """

    X = Input("Tensor of any shape.")
    Y = Input("Gives the shape; its values are not read.", dispensable=True)
    Out = Output("X broadcast; no LoD.")
    target_shape = Attr([], "Shape of Out.", type=AttrType.INTS)
    no_need_buffer_vars = ("Y",)
    expected_kernel_type = dtype_of("X")

    def infer_shape(ctx: InferShapeContext) -> None:
        dims = ctx.dim("X")
        target = [None if d < 0 else d for d in ctx.dim("Y")] if ctx.has_input("Y") else ctx.attr("target_shape")
        ctx.set_dim("Out", broadcast_dims(ctx.op_type, dims, target))


class ExpandAsV2Grad(GradOpDef, of=ExpandAsV2, shape_of="X", grads_of="X"):
    """X@GRAD sums Out@GRAD over the dims that were broadcast."""


# flatten (Paddle 1.x): all of the op but its kernels.
class Flatten(OpDef, type="flatten"):
    r"""$$Out_{i,j} = X.flat_{i c + j}$$: the matrix [product of dims before `axis`, c = product of the others] of X's
    elements.
    """

    X = Input("Tensor of any shape.")
    Out = Output("Matrix; LoD of X while the first dim stays.")
    axis = Attr(1, "Where to cut, 0 ... rank of X.")
    inplace = {"X": "Out"}

    def infer_shape(ctx: InferShapeContext) -> None:
        flattened(ctx)


class FlattenGrad(GradOpDef, of=Flatten, shape_of="X", linear=True):
    """X@GRAD is Out@GRAD in the shape of X."""


class Flatten2(OpDef, type="flatten2"):
    r"""$$Out_{i,j} = X.flat_{i c + j}$$: the matrix [product of dims before `axis`, c = product of the others] of X's
    elements.
    """

    X = Input("Tensor of any shape.")
    Out = Output("Matrix; LoD of X while the first dim stays.")
    XShape = XSHAPE
    axis = Attr(1, "Where to cut, 0 ... rank of X.")
    use_mkldnn = USE_MKLDNN
    mkldnn_data_type = MKLDNN_DATA_TYPE
    inplace = {"X": "Out"}

    sbp = regrouped

    def infer_shape(ctx: InferShapeContext) -> None:
        flattened(ctx)
        keep_shape(ctx)


class Flatten2Grad(XShapeGrad, of=Flatten2, linear=True):
    """X@GRAD is Out@GRAD in the shape of X."""


class Reshape(ReshapeOp, type="reshape"):
    r"""$$Out.flat = X.flat$$ in the shape `shape`: 0 copies a dim of X, one -1 takes what is left."""


class ReshapeGrad(
    GradOpDef, of=Reshape, reads="Out@GRAD", shape_of="X Shape ShapeTensor Out?", grads_of="X? Shape? ShapeTensor?"
):
    """X@GRAD is Out@GRAD in the shape of X."""

    inplace = {"Out@GRAD": "X@GRAD"}

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.set_dim("X@GRAD", ctx.dim("X"))
        ctx.share_lod("X", "X@GRAD")


class Shape(OpDef, type="shape"):
    r"""$$Out = (n_0, n_1, \ldots)$$: the dims of Input; of SelectedRows, those of the rows that it lists."""

    Input_ = Input("Tensor or SelectedRows of any shape.")
    Out = Output("int32 [rank of Input]")
    use_mkldnn = USE_MKLDNN
    mkldnn_data_type = MKLDNN_DATA_TYPE
    make_grad = empty_grad

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.set_dim("Out", (len(ctx.dim("Input")),))

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        ctx.set_kind("Out", VarType.LOD_TENSOR)
        ctx.set_dtype("Out", "int32")


class Size(OpDef, type="size"):
    r"""$$Out = \prod_a n_a$$: the number of elements of Input."""

    Input_ = Input("Tensor of any shape; its values are not read.")
    Out = Output("int64, 0-D.")
    no_need_buffer_vars = ("Input",)
    make_grad = empty_grad

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.set_dim("Out", ())

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        ctx.set_dtype("Out", "int64")


class Squeeze(SqueezeOp, type="squeeze"):
    r"""$$Out.flat = X.flat$$ without those of X's dims `axes` that have size 1; without all such dims when `axes` is
    empty.
    """


class SqueezeGrad(GradOpDef, of=Squeeze, reads="Out@GRAD", shape_of="X", linear=True):
    """X@GRAD is Out@GRAD in the shape of X."""

    inplace = {"Out@GRAD": "X@GRAD"}


class Squeeze2(SqueezeOp, type="squeeze2"):
    r"""$$Out.flat = X.flat$$ without those of X's dims `axes` that have size 1; without all such dims when `axes` is
    empty.
    """

    XShape = XSHAPE
    axes = Attr([], "Dims to remove; negative ones count from the end.", type=AttrType.INTS, support_tensor=True)
    use_mkldnn = USE_MKLDNN
    mkldnn_data_type = MKLDNN_DATA_TYPE

    def infer_shape(ctx: InferShapeContext) -> None:
        SqueezeOp.infer_shape(ctx)
        keep_shape(ctx)


class Squeeze2Grad(XShapeGrad, of=Squeeze2, linear=True):
    """X@GRAD is Out@GRAD in the shape of X."""


class Tile(OpDef, type="tile"):
    r"""$$Out_{\ldots, i, \ldots} = X_{\ldots, i \bmod n_a, \ldots}$$ for $$0 \le i < n_a \cdot repeat\_times_a$$ along
    each dim a.

    The shorter of the shape and repeat_times is filled up with ones in front.
    """

    X = Input("Tensor of any shape.")
    RepeatTimes = Input("int32 or int64 [n], overrides `repeat_times`.", dispensable=True)
    repeat_times_tensor = Input("n one-element tensors, override `repeat_times`.", dispensable=True, duplicable=True)
    Out = Output("X repeated; LoD of X while the first dim stays.")
    repeat_times = Attr([], "Repetitions along each dim.", type=AttrType.INTS, support_tensor=True)
    expected_kernel_type = dtype_of("X")

    def sbp(ctx: SbpContext) -> list[Signature]:
        if ctx.has("RepeatTimes") or ctx.has("repeat_times_tensor"):
            return []
        x, out = ctx.dim("X"), ctx.dim("Out")
        new = len(out) - len(x)
        names = [n if a == b else None for n, a, b in zip(letters(len(x)), x, out[new:], strict=True)]
        return factors({"X": names}, {"Out": [None] * new + names}, linear=(("X",),))

    def infer_shape(ctx: InferShapeContext) -> None:
        set_tiled(ctx, "repeat_times", given_ints(ctx, "repeat_times", "RepeatTimes", "repeat_times_tensor"))


class TileGrad(GradOpDef, of=Tile, shape_of="X RepeatTimes repeat_times_tensor", grads_of="X", linear=True):
    """X@GRAD sums Out@GRAD over the repetitions."""


class Unsqueeze(UnsqueezeOp, type="unsqueeze"):
    r"""$$Out.flat = X.flat$$ with a dim of size 1 inserted for each of `axes`, one after the other."""

    def infer_shape(ctx: InferShapeContext) -> None:
        infer_shape(ctx)


class UnsqueezeGrad(GradOpDef, of=Unsqueeze, reads="Out@GRAD", shape_of="X", linear=True):
    """X@GRAD is Out@GRAD in the shape of X."""

    inplace = {"Out@GRAD": "X@GRAD"}


class Unsqueeze2(UnsqueezeOp, type="unsqueeze2"):
    r"""$$Out.flat = X.flat$$ with a dim of size 1 inserted for each of `axes`, one after the other."""

    AxesTensor = Input("int32 or int64 [n], overrides `axes`.", dispensable=True)
    AxesTensorList = Input("n one-element tensors, override `axes`.", dispensable=True, duplicable=True)
    XShape = XSHAPE
    expected_kernel_type = dtype_of("X")

    def infer_shape(ctx: InferShapeContext) -> None:
        infer_shape(ctx, "AxesTensor", "AxesTensorList")
        keep_shape(ctx)


class Unsqueeze2Grad(XShapeGrad, of=Unsqueeze2, shape_of="XShape AxesTensor AxesTensorList", linear=True):
    """X@GRAD is Out@GRAD in the shape of X."""
