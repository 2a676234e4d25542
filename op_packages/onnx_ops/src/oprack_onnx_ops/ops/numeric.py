"""Elements one by one, and reductions along axes that only a run knows."""

from __future__ import annotations

from oprack.op import REQUIRED, Attr, InferShapeContext, InferVarTypeContext, Input, Output, dtype_of
from oprack.op.families import Unary
from oprack.types import AttrType

from oprack_onnx_ops.ops._common import OnnxOp, dtypes, front_axis, numbers, same_shape


class OnnxReduce(OnnxOp, type="onnx_reduce"):
    r"""$$reduced_p = f(data_{p, 0}, data_{p, 1}, \ldots)$$ along axes that are an input."""

    data = Input("Tensor of any shape.")
    axes = Input("Integers: the axes; all where it is empty or absent.", dispensable=True)
    reduced = Output("Dtype of data.")
    function = Attr(REQUIRED, "What becomes of the elements.", type=AttrType.STRING).in_set(
        ["sum", "mean", "max", "min", "prod"]
    )
    keepdims = Attr(True, "The axes stay, with size 1.")
    noop_with_empty_axes = Attr(False, "Without axes nothing is reduced.")
    expected_kernel_type = dtype_of("data")

    def infer_shape(ctx: InferShapeContext) -> None:
        dims = list(ctx.dim("data"))
        count = ctx.dim("axes")[0] if ctx.has_input("axes") and ctx.dim("axes") else 0
        axes = numbers(ctx, "axes") if count else []
        if axes == [] and ctx.attr("noop_with_empty_axes"):
            ctx.set_dim("reduced", dims)
        elif axes is None and count < 0:
            return
        elif axes is None:
            rest = len(dims) - (0 if ctx.attr("keepdims") else count)
            ctx.set_dim("reduced", [-1] * max(rest, 0))
        elif dims or ctx.is_runtime:
            gone = {front_axis(a, dims) for a in axes} or set(range(len(dims)))
            ctx.require(
                all(0 <= a < max(len(dims), 1) for a in gone),
                f"axes is {axes} and data has shape {dims}; expected its axes",
            )
            kept = [1 if i in gone else d for i, d in enumerate(dims) if i not in gone or ctx.attr("keepdims")]
            ctx.set_dim("reduced", kept)


class OnnxCumulate(OnnxOp, type="onnx_cumulate"):
    r"""$$y_i = x_0 \circ \ldots \circ x_i$$ along an axis, with the sum or the product."""

    x = Input("Tensor of rank 1 or more.")
    axis = Input("One integer: the axis.")
    y = Output("Shape of x.")
    function = Attr("sum", "sum or prod.").in_set(["sum", "prod"])
    exclusive = Attr(False, "Without the element itself: the first result is 0 or 1.")
    reverse = Attr(False, "From the end.")
    expected_kernel_type = dtype_of("x")

    def infer_shape(ctx: InferShapeContext) -> None:
        same_shape(ctx, "x", "y")


class OnnxFmod(OnnxOp, type="onnx_fmod"):
    r"""$$C = A - B \cdot \operatorname{trunc}(A / B)$$: the remainder with the sign of A."""

    A = Input("Tensor of any shape.")
    B = Input("Tensor whose shape broadcasts with A's.")
    C = Output("The broadcast shape.")


class OnnxRound(Unary, type="onnx_round"):
    r"""$$Out = \operatorname{rint}(X)$$: the nearest integer, of two the even one."""


class OnnxIsInf(OnnxOp, type="onnx_is_inf"):
    r"""$$Y = (X = \infty) \lor (X = -\infty)$$ or one of both."""

    X = Input("Tensor of any shape.")
    Y = Output("bool, shape of X.")
    detect_negative = Attr(True, "Minus infinity counts.")
    detect_positive = Attr(True, "Infinity counts.")

    def infer_shape(ctx: InferShapeContext) -> None:
        same_shape(ctx, "X", "Y")

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        dtypes(ctx, Y="bool")


class OnnxPow(OnnxOp, type="onnx_pow"):
    r"""$$Z = X^Y$$ in the dtype of X, whatever that of Y is."""

    X = Input("Tensor of any shape.")
    Y = Input("Tensor whose shape broadcasts with X's.")
    Z = Output("The broadcast shape, dtype of X.")
    expected_kernel_type = dtype_of("X")


class OnnxHardmax(OnnxOp, type="onnx_hardmax"):
    r"""$$output_i = 1$$ where $i$ is the first place of the largest along an axis, and 0 elsewhere."""

    input = Input("Tensor of rank 1 or more.")
    output = Output("Shape of input.")
    axis = Attr(-1, "The axis.")

    def infer_shape(ctx: InferShapeContext) -> None:
        same_shape(ctx, "input", "output")


class OnnxLpNormalization(OnnxOp, type="onnx_lp_normalization"):
    r"""$$output = input / \lVert input \rVert_p$$ along an axis, and 0 where the norm is 0."""

    input = Input("Tensor of rank 1 or more.")
    output = Output("Shape of input.")
    axis = Attr(-1, "The axis.")
    p = Attr(2, "Which norm.").in_set([1, 2])

    def infer_shape(ctx: InferShapeContext) -> None:
        same_shape(ctx, "input", "output")


class OnnxTfIdf(OnnxOp, type="onnx_tf_idf"):
    r"""$$Y_g = w_g \cdot |\{i : X_{i, i+s, \ldots} = g\}|$$: how often n-grams occur in rows of integers."""

    X = Input("int32 or int64 [n] or [rows, n].")
    Y = Output("float32 [m] or [rows, m].")
    mode = Attr("TF", "TF: counts; IDF: 1 or 0 times the weight; TFIDF: counts times the weight.").in_set(
        ["TF", "IDF", "TFIDF"]
    )
    min_gram_length = Attr(1, "The shortest n.")
    max_gram_length = Attr(1, "The longest n.")
    max_skip_count = Attr(0, "How many elements there may be between two of a gram.")
    ngram_counts = Attr([], "Where the n-grams of each n begin in the pool.", type=AttrType.LONGS)
    ngram_indexes = Attr([], "Place of each gram in Y.", type=AttrType.LONGS)
    pool_int64s = Attr([], "The grams, one behind the other.", type=AttrType.LONGS)
    weights = Attr([], "A weight for each gram; 1 where there are none.", type=AttrType.FLOATS)

    def infer_shape(ctx: InferShapeContext) -> None:
        dims = ctx.require_rank("X", 1, 2)
        ctx.set_dim("Y", [*dims[:-1], max(ctx.attr("ngram_indexes"), default=-1) + 1])

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        dtypes(ctx, Y="float32")


class OnnxArrayFeatureExtractor(OnnxOp, type="onnx_array_feature_extractor"):
    r"""$$Z_{p,i} = X_{p, Y_i}$$ along the last axis."""

    X = Input("Tensor of rank 1 or more.")
    Y = Input("int64: the places.")
    Z = Output("Shape of X with the number of places last; [1, n] of one row.")
    expected_kernel_type = dtype_of("X")


class OnnxBinarizer(OnnxOp, type="onnx_binarizer"):
    r"""$$Y = 1$$ where $X > threshold$, and 0 elsewhere."""

    X = Input("Tensor of any shape.")
    Y = Output("Shape of X.")
    threshold = Attr(0.0, "The threshold.")

    def infer_shape(ctx: InferShapeContext) -> None:
        same_shape(ctx, "X", "Y")


class OnnxTreeEnsemble(OnnxOp, type="onnx_tree_ensemble"):
    r"""$$Y = \sum_t leaf_t(X)$$ over the trees t; or the mean, minimum or maximum."""

    X = Input("[rows, features].")
    splits = Input("Of each node: the value that it compares with.")
    leaf_weights = Input("Of each leaf: what it gives.")
    modes = Input("uint8, of each node: <=, <, >=, >, ==, !=, member, by 0 to 6.")
    membership_values = Input("For nodes of mode member: their values, each list ended by NaN.", dispensable=True)
    Y = Output("[rows, n_targets].")
    n_targets = Attr(1, "Columns of Y.")
    aggregate_function = Attr(1, "0: mean; 1: sum; 2: minimum; 3: maximum.").in_set([0, 1, 2, 3])
    post_transform = Attr(0, "0: none; 1: softmax; 2: logistic; 3: softmax of what is not 0; 4: probit.")
    tree_roots = Attr([], "The first node of each tree.", type=AttrType.LONGS)
    nodes_featureids = Attr([], "The column that each node looks at.", type=AttrType.LONGS)
    nodes_truenodeids = Attr([], "Where to go on if true.", type=AttrType.LONGS)
    nodes_trueleafs = Attr([], "Whether that is a leaf.", type=AttrType.LONGS)
    nodes_falsenodeids = Attr([], "Where to go on if false.", type=AttrType.LONGS)
    nodes_falseleafs = Attr([], "Whether that is a leaf.", type=AttrType.LONGS)
    nodes_missing_value_tracks_true = Attr([], "Whether NaN counts as true.", type=AttrType.LONGS)
    leaf_targetids = Attr([], "The column of Y to which each leaf adds.", type=AttrType.LONGS)
    expected_kernel_type = dtype_of("X")

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.set_dim("Y", [ctx.require_rank("X", 2)[0], ctx.attr("n_targets")])
