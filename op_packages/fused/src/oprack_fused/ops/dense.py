"""Definitions of products with a bias and an activation, and of pairs of element-wise functions."""

from __future__ import annotations

from oprack.op import REQUIRED, Attr, ForwardOp, GradOp, InferShapeContext, Input, OpDef, Output
from oprack.op.families import like
from oprack.op.sbp import leading
from oprack.types import AttrType

from oprack_fused.ops import _attrs
from oprack_fused.ops._shapes import Dims, dense_dims

# A pair of element-wise functions, one of two inputs and one of one.
BINARY = ("elementwise_add", "elementwise_mul")

UNARY = ("relu", "scale", "tanh", "sigmoid", "gelu")


def is_pair(functors: list[str], ending: str = "") -> bool:
    """Whether a list names one function of each sort; ending: "_grad" where those are the gradients."""
    names = [name.removesuffix(ending) for name in functors if name.endswith(ending)]
    return (
        len(functors) == 2 == len(names)
        and sorted(name in BINARY for name in names) == [False, True]
        and all(name in (*BINARY, *UNARY) for name in names)
    )


def _functors(ending: str = "") -> Attr:
    return Attr(
        REQUIRED,
        "The outer function and the inner one: [unary, binary] is unary(binary(X, Y)), and [binary, unary] is "
        "binary(X, unary(Y)).",
        type=AttrType.STRINGS,
    ).check(
        lambda v: is_pair(v, ending),
        f"one of {', '.join(n + ending for n in BINARY)} and one of {', '.join(n + ending for n in UNARY)}",
    )


AXIS = Attr(-1, "Dim of X at which the dims of Y start; -1 aligns the last dims.")

SCALE = Attr(0.0, "Factor of the function scale.")

SAVE = Attr(False, "Keep what the inner function gives.")


class Pair(OpDef):
    """Two functions in one op."""

    X = Input("Tensor of any shape.")
    Y = Input("Tensor whose shape broadcasts to X's.")
    Out = Output("Shape and LoD of X.")
    IntermediateOut = Output("What the inner function gives, with `save_intermediate_out`.", intermediate=True)
    axis = AXIS
    scale = SCALE
    save_intermediate_out = SAVE
    functor_list = _functors()

    def infer_shape(ctx: InferShapeContext) -> None:
        x, y = list(ctx.dim("X")), list(ctx.dim("Y"))
        ctx.require(len(y) <= len(x), f"X has shape {x} and Y {y}; expected no more dims of Y than of X")
        start = len(x) - len(y) if ctx.attr("axis") == -1 else ctx.attr("axis")
        met = x[start : start + len(y)]
        ctx.require(
            0 <= start and len(met) == len(y) and all(b in (1, -1, a) or a == -1 for a, b in zip(met, y, strict=True)),
            f"X has shape {x}, Y {y}, and axis is {ctx.attr('axis')}; expected dims of Y that are 1 or those of X",
        )
        like(ctx, [("Out", "X")])
        inner = "X" if ctx.attr("functor_list")[1] in BINARY else "Y"
        like(ctx, [("IntermediateOut", inner)])


class PairGrad(OpDef):
    """Its gradient: the gradients of both functions, the outer one first."""

    X = Input("As X of the forward op.")
    Y = Input("As Y of the forward op.")
    IntermediateOut = Input("As IntermediateOut of the forward op.", dispensable=True)
    Out = Input("As Out of the forward op.")
    Out_grad = Input("Gradient of Out.", name="Out@GRAD")
    X_grad = Output("Gradient of X.", name="X@GRAD")
    Y_grad = Output("Gradient of Y.", name="Y@GRAD")
    IntermediateOut_grad = Output("Not computed.", dispensable=True, name="IntermediateOut@GRAD")
    axis = AXIS
    scale = SCALE
    save_intermediate_out = SAVE
    functor_list = _functors("_grad")

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.same_size("X", "Out@GRAD")
        like(ctx, [("X@GRAD", "X"), ("Y@GRAD", "Y")])


def pair_grad(fwd: ForwardOp) -> GradOp:
    """make_grad of a Pair."""
    slots = {slot: fwd.input(slot) for slot in ("X", "Y")} | {"Out": fwd.output("Out")}
    if fwd.attrs["save_intermediate_out"] and fwd.has_output("IntermediateOut"):
        slots["IntermediateOut"] = fwd.output("IntermediateOut")
    slots |= {"Out@GRAD": fwd.output_grad("Out")} | {f"{s}@GRAD": fwd.input_grad(s) for s in ("X", "Y")}
    functors = [f"{name}_grad" for name in fwd.attrs["functor_list"]]
    return GradOp(f"{fwd.type}_grad", attrs={**fwd.attrs, "functor_list": functors}, slots=slots)


# Shapes of what layer_norm takes.
def normed_columns(ctx: InferShapeContext, dims: Dims, axis: int) -> tuple[int, int]:
    """Rows and columns of a tensor whose dims from `axis` on are normalised together.

    Raises:
        InvalidArgumentError: There is no such axis.
    """
    ctx.require(
        0 < axis < len(dims), f"begin_norm_axis is {axis} for shape {list(dims)}; expected an axis but the first"
    )
    sizes = [1, 1]
    for i, d in enumerate(dims):
        side = i >= axis
        sizes[side] = -1 if -1 in (sizes[side], d) else sizes[side] * d
    return sizes[0], sizes[1]


class Fc(OpDef, type="fc"):
    r"""$$Out = a(Input\,W + Bias)$$ mul, elementwise_add and the activation $a$."""

    Input_ = Input("The first `in_num_col_dims` dims are rows.", name="Input")
    W = Input("[K, N], or [K + 4, N + 4] with `padding_weights`.")
    Bias = Input("[N] or [1, N].", dispensable=True)
    Out = Output("Rows of Input, then N; LoD of Input.")
    in_num_col_dims = Attr(1, "How many dims of Input are rows.")
    activation_type = Attr("", "Type of the activation's op; empty: none.")
    use_mkldnn = _attrs.USE_MKLDNN
    padding_weights = Attr(False, "The last 4 rows and columns of W are padding.")
    use_quantizer = Attr(False, "Paddle: marked for quantisation.")
    mkldnn_data_type = _attrs.MKLDNN_DATA_TYPE
    Scale_in = Attr(1.0, "Scale of Input in a quantised model.")
    Scale_weights = _attrs.SCALE_WEIGHTS
    Scale_out = Attr(1.0, "Scale of Out in a quantised model.")
    force_fp32_output = _attrs.FORCE_FP32_OUTPUT

    sbp = leading(("Input",), ("Out",), lambda ctx: int(ctx.attr("in_num_col_dims", 1)))

    def infer_shape(ctx: InferShapeContext) -> None:
        weight, bias = tuple(ctx.dim("W")), tuple(ctx.dim("Bias")) if ctx.has_input("Bias") else None
        if ctx.attr("padding_weights"):
            weight = tuple(d if d < 0 else d - 4 for d in weight)
        x = tuple(ctx.dim("Input"))
        ctx.set_dim("Out", dense_dims(ctx, x, weight, bias, rows=ctx.attr("in_num_col_dims"), of="Input"))
        ctx.share_lod("Input", "Out")


# fused_elemwise_activation and its gradient.
class FusedElemwiseActivation(Pair, type="fused_elemwise_activation"):
    r"""$$Out = u(b(X, Y)) \quad\text{or}\quad Out = b(X, u(Y))$$ for a unary $u$ and a binary $b$ of `functor_list`."""

    make_grad = pair_grad


class FusedElemwiseActivationGrad(PairGrad, type="fused_elemwise_activation_grad"):
    r"""$$X@GRAD = b_X\,u'\,Out@GRAD,\quad Y@GRAD = b_Y\,u'\,Out@GRAD$$ summed where Y was broadcast."""


# fused_elemwise_add_activation and its gradient.
class FusedElemwiseAddActivation(Pair, type="fused_elemwise_add_activation"):
    r"""$$Out = u(b(X, Y)) \quad\text{or}\quad Out = b(X, u(Y))$$ for a unary $u$ and a binary $b$ of `functor_list`."""

    make_grad = pair_grad


class FusedElemwiseAddActivationGrad(PairGrad, type="fused_elemwise_add_activation_grad"):
    r"""$$X@GRAD = b_X\,u'\,Out@GRAD,\quad Y@GRAD = b_Y\,u'\,Out@GRAD$$ summed where Y was broadcast."""


class FusedFcElementwiseLayernorm(OpDef, type="fused_fc_elementwise_layernorm"):
    r"""$$Out = \operatorname{layer\_norm}(a(X W + Bias_0) + Y)$$ fc, elementwise_add and layer_norm."""

    X = Input("The first `x_num_col_dims` dims are rows.")
    W = Input("[K, N].")
    Y = Input("Rows of X, then N.")
    Bias0 = Input("[N].", dispensable=True)
    Scale = Input("A number for each column that is normalised.", dispensable=True)
    Bias1 = Input("A number for each column that is normalised.", dispensable=True)
    Out = Output("Shape of Y; LoD of X.")
    Mean = Output("The mean of each row.", dispensable=True)
    Variance = Output("The variance of each row.", dispensable=True)
    x_num_col_dims = Attr(1, "How many dims of X are rows.")
    activation_type = Attr("", "Type of the activation's op; empty: none.")
    epsilon = Attr(1e-5, "Keeps the divisor from 0.")
    begin_norm_axis = Attr(1, "Dims of Y from here on are normalised together.")

    def infer_shape(ctx: InferShapeContext) -> None:
        bias = tuple(ctx.dim("Bias0")) if ctx.has_input("Bias0") else None
        dims = dense_dims(ctx, tuple(ctx.dim("X")), tuple(ctx.dim("W")), bias, rows=ctx.attr("x_num_col_dims"))
        ctx.require_dims("Y", dims, why="the shape of X W")
        rows, columns = normed_columns(ctx, dims, ctx.attr("begin_norm_axis"))
        for slot in ("Scale", "Bias1"):
            ctx.require_dims(slot, (columns,), why=f"the columns of Y {list(dims)}")
        for slot in ("Mean", "Variance"):
            ctx.set_dim(slot, (rows,))
        ctx.set_dim("Out", dims)
        ctx.share_lod("X", "Out")


class FusionRepeatedFcRelu(OpDef, type="fusion_repeated_fc_relu"):
    r"""$$x_0 = X,\quad x_{i+1} = \max(0, x_i W_i + Bias_i),\quad Out = x_n$$"""

    X = Input("[M, K].")
    W = Input("Matrices, each with as many rows as the one before has columns.", duplicable=True)
    Bias = Input("A number for each column of each matrix.", duplicable=True)
    ReluOut = Output("$x_1$ to $x_{n-1}$.", duplicable=True, intermediate=True)
    Out = Output("[M, columns of the last matrix], LoD of X.")

    def infer_shape(ctx: InferShapeContext) -> None:
        count = ctx.input_count("W")
        ctx.require(
            count == ctx.input_count("Bias") and count > 0,
            f"{count} weights and {ctx.input_count('Bias')} biases are given; expected as many, and one at least",
        )
        dims = tuple(ctx.require_rank("X", 2))
        for i in range(count):
            dims = dense_dims(ctx, dims, tuple(ctx.dim("W", i)), tuple(ctx.dim("Bias", i)))
            if i < count - 1:
                ctx.set_dim("ReluOut", dims, i)
        ctx.set_dim("Out", dims)
        ctx.share_lod("X", "Out")


class FusionSquaredMatSub(OpDef, type="fusion_squared_mat_sub"):
    r"""$$Out = scalar \cdot ((X Y)^2 - X^2 Y^2)$$ with squares of elements."""

    X = Input("[M, K].")
    Y = Input("[K, N].")
    SquaredX = Output("$X^2$.", intermediate=True)
    SquaredY = Output("$Y^2$.", intermediate=True)
    SquaredXY = Output("$(X Y)^2$.", intermediate=True)
    Out = Output("[M, N], LoD of X.")
    scalar = Attr(1.0, "The factor.")

    def infer_shape(ctx: InferShapeContext) -> None:
        x, y = tuple(ctx.require_rank("X", 2)), tuple(ctx.require_rank("Y", 2))
        dims = dense_dims(ctx, x, y, None)
        ctx.set_dim("SquaredX", x)
        ctx.set_dim("SquaredY", y)
        ctx.set_dim("SquaredXY", dims)
        ctx.set_dim("Out", dims)
        ctx.share_lod("X", "Out")


class SkipLayernorm(OpDef, type="skip_layernorm"):
    r"""$$Out = \operatorname{layer\_norm}(X + Y)$$ elementwise_add and layer_norm."""

    X = Input("Tensor of rank 2 or more.")
    Y = Input("Shape of X.")
    Scale = Input("A number for each column.")
    Bias = Input("A number for each column.")
    Out = Output("Shape and LoD of X.")
    epsilon = Attr(REQUIRED, "Keeps the divisor from 0.", type=AttrType.FLOAT)
    begin_norm_axis = Attr(REQUIRED, "Dims from here on are normalised together.", type=AttrType.INT)

    def infer_shape(ctx: InferShapeContext) -> None:
        dims = tuple(ctx.dim("X"))
        ctx.same_dims("X", "Y")
        _, columns = normed_columns(ctx, dims, ctx.attr("begin_norm_axis"))
        for slot in ("Scale", "Bias"):
            ctx.require_dims(slot, (columns,), why=f"the columns of X {list(dims)}")
        like(ctx, [("Out", "X")])
