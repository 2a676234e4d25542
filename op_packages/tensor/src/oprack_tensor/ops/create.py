"""Tensors made from a shape, a range or values of the program."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from oprack.op import (
    REQUIRED,
    Attr,
    GradOpDef,
    InferShapeContext,
    InferVarTypeContext,
    Input,
    KernelTypeContext,
    OpDef,
    OpVersion,
    Output,
    dtype_of,
    dtype_of_attr,
    empty_grad,
)
from oprack.op.families import USE_MKLDNN, out_like_x
from oprack.op.sbp import SbpContext, Signature, leading, split, unary
from oprack.types import AttrType, VarType

from oprack_tensor.dims import count_is_open, given_ints, product, range_length

if TYPE_CHECKING:
    from oprack.kernel import OpKernelType


# What one_hot and one_hot_v2 share.
def given_depth(ctx: InferShapeContext) -> int:
    """The number of classes, -1 where it is not known yet."""
    depth = ctx.attr("depth")
    if ctx.has_input("depth_tensor"):
        value = ctx.scalar("depth_tensor")
        depth = -1 if value is None else int(value)
    ctx.require_sizes("depth", [depth])
    return depth


class OneHotOf(OpDef):
    """Ids as rows of zeros with a 1."""

    X = Input("int32 or int64 ids of any shape.")
    depth_tensor = Input("One-element tensor that overrides `depth`.", dispensable=True)
    Out = Output("Shape of X and a last dim `depth`; LoD of X.")
    depth = Attr(-1, "Number of classes.")
    dtype = Attr(5, "dtype of Out.")
    allow_out_of_range = Attr(False, "Give zeros for an id outside [0, depth) instead of an error.")
    expected_kernel_type = dtype_of("X")
    make_grad = empty_grad

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.set_dim("Out", (*ctx.dim("X"), given_depth(ctx)))
        ctx.share_lod("X", "Out")

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        ctx.set_dtype("Out", ctx.attr("dtype"))


class AssignValue(OpDef, type="assign_value"):
    r"""$$Out_i = values_i$$: the values that the program itself carries, in the shape `shape`."""

    Out = Output("Tensor of `shape` and `dtype`.")
    shape = Attr(REQUIRED, "Shape of Out.", type=AttrType.INTS)
    dtype = Attr(REQUIRED, "dtype of Out; tells which list of values counts.", type=AttrType.INT)
    bool_values = Attr([], "Values of a bool tensor, 0 or 1.", type=AttrType.INTS)
    fp32_values = Attr([], "Values of a float32 tensor.", type=AttrType.FLOATS)
    fp64_values = Attr([], "Values of a float64 tensor.", type=AttrType.FLOAT64S)
    int32_values = Attr([], "Values of an int32 tensor, or of a smaller integer type.", type=AttrType.INTS)
    int64_values = Attr([], "Values of an int64 tensor.", type=AttrType.LONGS)
    expected_kernel_type = dtype_of_attr("dtype")
    make_grad = empty_grad

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.require_sizes("shape", ctx.attr("shape"))
        ctx.set_dim("Out", ctx.attr("shape"))

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        ctx.set_dtype("Out", ctx.attr("dtype"))


class Empty(OpDef, type="empty"):
    r"""A tensor of the given shape whose values do not matter; here $$Out = 0$$ so that runs can be repeated."""

    ShapeTensor = Input("int32 or int64 [n], overrides `shape`.", dispensable=True)
    ShapeTensorList = Input("n one-element tensors, override `shape`.", dispensable=True, duplicable=True)
    Out = Output("Tensor of the given shape and `dtype`.")
    shape = Attr([], "Shape of Out.", type=AttrType.LONGS)
    dtype = Attr(5, "dtype of Out.")
    expected_kernel_type = dtype_of_attr("dtype")
    make_grad = empty_grad

    def infer_shape(ctx: InferShapeContext) -> None:
        if count_is_open(ctx, "ShapeTensor"):
            return
        shape = [-1 if s is None else s for s in given_ints(ctx, "shape", "ShapeTensor", "ShapeTensorList")]
        ctx.require_sizes("shape", shape)
        ctx.set_dim("Out", shape)

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        ctx.set_dtype("Out", ctx.attr("dtype"))


class Eye(OpDef, type="eye"):
    r"""$$Out_{i,j} = [i = j]$$"""

    Out = Output("[num_rows, num_columns]")
    num_rows = Attr(REQUIRED, "Number of rows.", type=AttrType.LONG, support_tensor=True)
    num_columns = Attr(-1, "Number of columns; -1 for as many as rows.", type=AttrType.LONG, support_tensor=True)
    dtype = Attr(5, "dtype of Out.")
    expected_kernel_type = dtype_of_attr("dtype")
    make_grad = empty_grad

    def infer_shape(ctx: InferShapeContext) -> None:
        (rows,), (columns,) = given_ints(ctx, "num_rows"), given_ints(ctx, "num_columns")
        columns = rows if columns == -1 else columns
        sizes = [-1 if n is None else n for n in (rows, columns)]
        ctx.require_sizes("the matrix of num_rows and num_columns", sizes)
        ctx.set_dim("Out", sizes)

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        ctx.set_dtype("Out", ctx.attr("dtype"))


class Fill(OpDef, type="fill"):
    r"""$$Out_i = value_i$$: numbers that the program itself carries, in the shape `shape`."""

    Out = Output("Tensor of `shape` and `dtype`.")
    value = Attr(REQUIRED, "The numbers, one for each element.", type=AttrType.FLOATS)
    shape = Attr(REQUIRED, "Shape of Out.", type=AttrType.INTS)
    dtype = Attr(5, "dtype of Out.")
    force_cpu = Attr(False, "Paddle: leave Out on the host.")
    expected_kernel_type = dtype_of_attr("dtype")
    make_grad = empty_grad

    def infer_shape(ctx: InferShapeContext) -> None:
        shape, count = ctx.attr("shape"), len(ctx.attr("value"))
        ctx.require_sizes("shape", shape)
        ctx.require(
            product(shape) == count, f"value has {count} numbers and shape is {list(shape)}; expected as many elements"
        )
        ctx.set_dim("Out", shape)

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        ctx.set_dtype("Out", ctx.attr("dtype"))


# fill_any and its gradient.
class FillAny(OpDef, type="fill_any"):
    r"""$$Out = value$$ at every place of X."""

    X = Input("Tensor of any shape.")
    Out = Output("Shape, type and LoD of X.")
    value = Attr(0.0, "The value.", support_tensor=True)
    inplace = {"X": "Out"}
    infer_shape = out_like_x


class FillAnyGrad(GradOpDef, of=FillAny, like="Out@GRAD"):
    r"""$$X@GRAD = 0$$"""

    inplace = {"Out@GRAD": "X@GRAD"}


class FillAnyLike(OpDef, type="fill_any_like"):
    r"""$$Out_i = value$$ in the shape of X."""

    X = Input("Gives the shape; its values are not read.")
    Out = Output("Shape and LoD of X.")
    value = Attr(0.0, "The value.", support_tensor=True)
    dtype = Attr(-1, "dtype of Out; -1 takes that of X.")
    no_need_buffer_vars = ("X",)
    expected_kernel_type = dtype_of_attr("dtype", "X")
    make_grad = empty_grad
    sbp = unary
    infer_shape = out_like_x

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        ctx.set_kind("Out", ctx.kind("X"))
        ctx.set_dtype("Out", ctx.dtype("X") if ctx.attr("dtype") < 0 else ctx.attr("dtype"))


class FillConstant(OpDef, type="fill_constant"):
    r"""$$Out_i = value$$ in the shape `shape`."""

    ValueTensor = Input("One-element tensor that overrides `value` and `str_value`.", dispensable=True)
    ShapeTensor = Input("int32 or int64 [n], overrides `shape`.", dispensable=True)
    ShapeTensorList = Input("n one-element tensors, override `shape`.", dispensable=True, duplicable=True)
    Out = Output("Tensor of the given shape and `dtype`.")
    dtype = Attr(5, "dtype of Out.")
    shape = Attr([], "Shape of Out.", type=AttrType.LONGS)
    value = Attr(0.0, "The value.")
    str_value = Attr("", "The value as text, exact for large integers; overrides `value` when not empty.")
    force_cpu = Attr(False, "Keep Out in host memory.")
    place_type = Attr(-1, "Where Out lives: -1 where the op runs, 0 host, 1 device, 2 pinned host memory.")
    use_mkldnn = USE_MKLDNN
    expected_kernel_type = dtype_of_attr("dtype")
    make_grad = empty_grad
    versions = (
        OpVersion("fill_constant")
        .checkpoint("The value may be a tensor.", ("new_input", "ValueTensor", None))
        .checkpoint("The place may be chosen.", ("new_attr", "place_type", -1))
    )

    def sbp(ctx: SbpContext) -> list[Signature]:
        if ctx.has("ShapeTensor") or ctx.has("ShapeTensorList"):
            return []
        return [Signature({}, {"Out": split(k)}, sizes={"shape": "Out"}) for k in range(len(ctx.dim("Out")))]

    def infer_shape(ctx: InferShapeContext) -> None:
        if count_is_open(ctx, "ShapeTensor"):
            return
        shape = [-1 if s is None else s for s in given_ints(ctx, "shape", "ShapeTensor", "ShapeTensorList")]
        ctx.require_sizes("shape", shape)
        ctx.set_dim("Out", shape)

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        ctx.set_dtype("Out", ctx.attr("dtype"))


def _kernel_type(ctx: KernelTypeContext) -> OpKernelType:
    dtype = ctx.dtype("X") if ctx.is_initialized("X") else ctx.output_dtype("Out") or "float32"
    return ctx.kernel_type(dtype=dtype)


class FillZerosLike(OpDef, type="fill_zeros_like"):
    r"""$$Out_i = 0$$ in the shape of X."""

    X = Input("Tensor, or array of tensors.")
    Out = Output("Shape, type and LoD of X.")
    expected_kernel_type = _kernel_type
    no_need_buffer_vars = ("X",)
    make_grad = empty_grad
    sbp = unary

    def infer_shape(ctx: InferShapeContext) -> None:
        if not (ctx.is_runtime and ctx.kind("X") == VarType.LOD_TENSOR_ARRAY):
            ctx.set_dim("Out", ctx.dim("X"))
            ctx.share_lod("X", "Out")


class FillZerosLike2(OpDef, type="fill_zeros_like2"):
    r"""$$Out = 0$$ at every place of X, in a dtype of its own."""

    X = Input("Gives the shape; its values are not read.")
    Out = Output("Shape and LoD of X.")
    dtype = Attr(5, "dtype of Out.")
    expected_kernel_type = dtype_of_attr("dtype")
    no_need_buffer_vars = ("X",)
    make_grad = empty_grad
    sbp = unary
    infer_shape = out_like_x

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        ctx.set_dtype("Out", ctx.attr("dtype"))


class Linspace(OpDef, type="linspace"):
    r"""$$Out_i = Start + i \cdot (Stop - Start) / (Num - 1)$$"""

    Start = Input("One-element tensor, the first value.")
    Stop = Input("One-element tensor, the last value.")
    Num = Input("One-element integer tensor, the number of values.")
    Out = Output("[Num]")
    dtype = Attr(REQUIRED, "dtype of Out.", type=AttrType.INT)
    expected_kernel_type = dtype_of_attr("dtype")
    make_grad = empty_grad
    versions = OpVersion("linspace").checkpoint("The dtype may differ from that of Start.", ("new_attr", "dtype", 5))

    def infer_shape(ctx: InferShapeContext) -> None:
        num = ctx.scalar("Num")
        size = -1 if num is None else int(num)
        ctx.require_sizes("Num", [size])
        ctx.set_dim("Out", (size,))

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        ctx.set_dtype("Out", ctx.attr("dtype"))


class Logspace(OpDef, type="logspace"):
    r"""$$Out_i = Base^{Start + i (Stop - Start) / (Num - 1)}$$ of one number Start; integers are cut towards zero."""

    Start = Input("One-element tensor, the first exponent.")
    Stop = Input("One-element tensor, the last exponent.")
    Num = Input("One-element integer tensor, the number of values.")
    Base = Input("One-element tensor, the base.")
    Out = Output("[Num]")
    dtype = Attr(REQUIRED, "dtype of Out.", type=AttrType.INT)
    expected_kernel_type = dtype_of_attr("dtype")
    make_grad = empty_grad

    def infer_shape(ctx: InferShapeContext) -> None:
        num = ctx.scalar("Num")
        size = -1 if num is None else int(num)
        ctx.require_sizes("Num", [size])
        ctx.set_dim("Out", (size,))

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        ctx.set_dtype("Out", ctx.attr("dtype"))


class Meshgrid(OpDef, type="meshgrid"):
    r"""$$Out[k]_{i_0, i_1, \ldots} = X[k]_{i_k}$$"""

    X = Input("k tensors, 1-D or 0-D.", duplicable=True)
    Out = Output("k tensors of shape [elements of X[0], ..., elements of X[k-1]].", duplicable=True)

    def infer_shape(ctx: InferShapeContext) -> None:
        shapes = ctx.dims("X")
        ctx.require(all(len(s) <= 1 for s in shapes), f"X has shapes {[list(s) for s in shapes]}; expected rank 0 or 1")
        ctx.set_dims("Out", [[product(s) for s in shapes]] * len(shapes))


class MeshgridGrad(GradOpDef, of=Meshgrid, shape_of="X", names={"Out": "outputs"}):
    """X@GRAD[i] sums the gradient of Out[i] over all dims but i."""


# one_hot (Paddle 1.x): all of the op but its kernel.
class OneHot(OneHotOf, type="one_hot"):
    r"""$$Out_{..., k} = 1$$ where $$X_{..., 0} = k$$, else 0."""

    X = Input("int32 or int64 ids [..., 1].")

    sbp = leading(("X",), ("Out",), lambda ctx: len(ctx.dim("Out")) - 1)

    def infer_shape(ctx: InferShapeContext) -> None:
        dims = ctx.dim("X")
        ctx.require(len(dims) >= 2 and dims[-1] in (1, -1), f"X has shape {list(dims)}; expected a last dim of size 1")
        ctx.set_dim("Out", (*dims[:-1], given_depth(ctx)))
        ctx.share_lod("X", "Out")


class OneHotV2(OneHotOf, type="one_hot_v2"):
    r"""$$Out_{..., k} = 1$$ where $$X_{...} = k$$, else 0."""

    sbp = leading(("X",), ("Out",), lambda ctx: len(ctx.dim("Out")) - 1)


class Range(OpDef, type="range"):
    r"""$$Out_i = Start + i \cdot Step$$ for all values before End."""

    Start = Input("One-element tensor.")
    End = Input("One-element tensor, not part of the result.")
    Step = Input("One-element tensor, not 0.")
    Out = Output("[ceil((End - Start) / Step)]")
    expected_kernel_type = dtype_of("Start")
    make_grad = empty_grad

    def infer_shape(ctx: InferShapeContext) -> None:
        values = [ctx.scalar(slot) for slot in ("Start", "End", "Step")]
        if any(v is None for v in values):
            ctx.set_dim("Out", (-1,))
            return
        start, end, step = (v.item() for v in values)
        ctx.require(
            all(map(math.isfinite, (start, end, step))),
            f"Start is {start}, End {end} and Step {step}; expected finite numbers",
        )
        ctx.require(step != 0, "Step is 0; expected a step towards End")
        ctx.require(
            start == end or (end > start) == (step > 0),
            f"Start is {start}, End {end} and Step {step}; expected a Step whose sign leads from Start to End",
        )
        ctx.set_dim("Out", (range_length(start, end, step),))


class TrilTriu(OpDef, type="tril_triu"):
    r"""$$Out_{\ldots, i, j} = X_{\ldots, i, j} \cdot [j - i \le diagonal]$$ with `lower`, else
    $$[j - i \ge diagonal]$$.
    """

    X = Input("[..., n, m]")
    Out = Output("Shape and LoD of X.")
    diagonal = Attr(0, "Which diagonal: 0 the main one, positive above it.")
    lower = Attr(False, "Keep the lower part instead of the upper one.")
    sbp = leading(("X",), ("Out",), lambda ctx: len(ctx.dim("X")) - 2)

    def infer_shape(ctx: InferShapeContext) -> None:
        dims = ctx.dim("X")
        ctx.require(len(dims) >= 2, f"X has shape {list(dims)}; expected rank 2 or more")
        ctx.set_dim("Out", dims)
        ctx.share_lod("X", "Out")


class TrilTriuGrad(GradOpDef, of=TrilTriu, like="Out@GRAD", linear=True):
    """X@GRAD is Out@GRAD with the same part set to 0."""
