"""Elements taken by their places, and put into places."""

from __future__ import annotations

from oprack.op import Attr, InferShapeContext, InferVarTypeContext, Input, Output, dtype_of

from oprack_onnx_ops.ops._common import OnnxOp, dtypes, front_axis, numbers, same_shape

REDUCTION = Attr("none", "What an update does to the element at its place.").in_set(
    ["none", "add", "mul", "max", "min"]
)


class OnnxSlice(OnnxOp, type="onnx_slice"):
    r"""$$output_i = data_{starts + i \cdot steps}$$ along each of the axes, up to `ends`, which is not reached."""

    data = Input("Tensor of any shape.")
    starts = Input("Integers: the first place along each axis; negative ones count from the end.")
    ends = Input("Integers: where to stop along each axis.")
    axes = Input("Integers: the axes; the first ones where it is absent.", dispensable=True)
    steps = Input("Integers other than 0: from place to place; 1 where it is absent.", dispensable=True)
    output = Output("Rank and dtype of data.")
    expected_kernel_type = dtype_of("data")

    def infer_shape(ctx: InferShapeContext) -> None:
        starts, ends = numbers(ctx, "starts"), numbers(ctx, "ends")
        dims = list(ctx.dim("data"))
        if starts is None or ends is None:
            ctx.set_dim("output", [-1] * len(dims))
            return
        axes = numbers(ctx, "axes") or list(range(len(starts)))
        steps = numbers(ctx, "steps") or [1] * len(starts)
        same = len(starts) == len(ends) == len(axes) == len(steps)
        ctx.require(same, f"starts, ends, axes and steps are {starts}, {ends}, {axes}, {steps}; expected equal lengths")
        ctx.require(0 not in steps, f"steps is {steps}; expected no 0")
        for start, end, axis, step in zip(starts, ends, axes, steps, strict=True):
            ctx.require(-len(dims) <= axis < len(dims), f"axes is {axes}; expected axes of data, of shape {dims}")
            dims[axis] = len(range(*slice(start, end, step).indices(dims[axis])))
        ctx.set_dim("output", dims)


class OnnxGather(OnnxOp, type="onnx_gather"):
    r"""$$output_{p, i, q} = data_{p, indices_i, q}$$ with `indices` of any rank in place of the axis."""

    data = Input("Tensor of rank 1 or more.")
    indices = Input("int32 or int64 of any shape; negative ones count from the end.")
    output = Output("Shape of data with the shape of indices in place of `axis`.")
    axis = Attr(0, "The axis.")
    expected_kernel_type = dtype_of("data")

    def infer_shape(ctx: InferShapeContext) -> None:
        dims, axis = ctx.dim("data"), ctx.axis("data")
        if dims:
            ctx.set_dim("output", (*dims[:axis], *ctx.dim("indices"), *dims[axis + 1 :]))


class OnnxGatherElements(OnnxOp, type="onnx_gather_elements"):
    r"""$$output_{i,j} = data_{indices_{i,j},\, j}$$ for axis 0, and so on for others."""

    data = Input("Tensor of rank 1 or more.")
    indices = Input("int32 or int64, rank of data; negative ones count from the end.")
    output = Output("Shape of indices.")
    axis = Attr(0, "The axis along which indices count.")
    expected_kernel_type = dtype_of("data")

    def infer_shape(ctx: InferShapeContext) -> None:
        same_shape(ctx, "indices", "output")


class OnnxGatherND(OnnxOp, type="onnx_gather_nd"):
    r"""$$output_{b, i} = data_{b, indices_{b, i, 0}, \ldots, indices_{b, i, n-1}}$$"""

    data = Input("Tensor of rank 1 or more.")
    indices = Input("int64 [..., n]: n places each, from the first axis on that is no batch axis.")
    output = Output("The shape of indices without the last dim, then the dims of data that are not indexed.")
    batch_dims = Attr(0, "How many leading axes data and indices share.")
    expected_kernel_type = dtype_of("data")

    def infer_shape(ctx: InferShapeContext) -> None:
        data, indices = ctx.dim("data"), ctx.dim("indices")
        if data and indices and indices[-1] >= 0:
            rest = data[ctx.attr("batch_dims") + indices[-1] :]
            ctx.set_dim("output", (*indices[:-1], *rest))


class OnnxScatterElements(OnnxOp, type="onnx_scatter_elements"):
    r"""$$output_{indices_{i,j},\, j} = updates_{i,j}$$ for axis 0, in a copy of data."""

    data = Input("Tensor of rank 1 or more.")
    indices = Input("int32 or int64, rank of data; negative ones count from the end.")
    updates = Input("Shape of indices, dtype of data.")
    output = Output("Shape of data.")
    axis = Attr(0, "The axis along which indices count.")
    reduction = REDUCTION
    expected_kernel_type = dtype_of("data")

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.require_dims("updates", ctx.dim("indices"), why="the shape of indices")
        same_shape(ctx, "data", "output")


class OnnxScatterND(OnnxOp, type="onnx_scatter_nd"):
    r"""$$output_{indices_{i,0}, \ldots, indices_{i,n-1}} = updates_i$$ in a copy of data."""

    data = Input("Tensor of rank 1 or more.")
    indices = Input("int64 [..., n]: places along the first n axes.")
    updates = Input("The shape of indices without the last dim, then the dims of data that are not indexed.")
    output = Output("Shape of data.")
    reduction = REDUCTION
    expected_kernel_type = dtype_of("data")

    def infer_shape(ctx: InferShapeContext) -> None:
        same_shape(ctx, "data", "output")


class OnnxTensorScatter(OnnxOp, type="onnx_tensor_scatter"):
    r"""$$present_{b, write_b + t} = update_{b, t}$$ along an axis: the cache of keys or values after a step."""

    past_cache = Input("Tensor of rank 2 or more; the first axis is the batch.")
    update = Input("As past_cache, with fewer or as many steps along the axis.")
    write_indices = Input("int64 [batch]: where each begins; 0 where it is absent.", dispensable=True)
    present_cache = Output("Shape of past_cache.")
    axis = Attr(-2, "The axis of steps.")
    mode = Attr("linear", "linear: as it is; circular: places behind the end begin anew.").in_set(
        ["linear", "circular"]
    )
    expected_kernel_type = dtype_of("past_cache")

    def infer_shape(ctx: InferShapeContext) -> None:
        same_shape(ctx, "past_cache", "present_cache")


class OnnxCompress(OnnxOp, type="onnx_compress"):
    r"""$$output_j = input_{i_j}$$ for the places $i_j$, in order, for which the condition holds."""

    input = Input("Tensor of any shape.")
    condition = Input("bool of rank 1, as long as the axis or shorter.")
    output = Output("Dtype of input.")
    axis = Attr(0, "The axis, with `flat` false.")
    flat = Attr(False, "Take elements, as of one long row, instead of slices.")
    expected_kernel_type = dtype_of("input")

    def infer_shape(ctx: InferShapeContext) -> None:
        dims = list(ctx.dim("input"))
        if ctx.attr("flat"):
            ctx.set_dim("output", [-1])
        elif dims:
            dims[ctx.axis("input")] = -1
            ctx.set_dim("output", dims)


class OnnxUnique(OnnxOp, type="onnx_unique"):
    r"""$$X_i = Y_{inverse_i}, \quad Y_j = X_{indices_j}$$ with the different elements or slices in Y."""

    X = Input("Tensor of any shape.")
    Y = Output("What is different.")
    indices = Output("int64: where each was met first.", dispensable=True)
    inverse_indices = Output("int64: which of Y each one is.", dispensable=True)
    counts = Output("int64: how often each is there.", dispensable=True)
    axis = Attr(0, "The axis, with `flat` false.")
    flat = Attr(True, "Elements, as of one long row, instead of slices.")
    sorted = Attr(True, "In order; else in the order in which they are met.")

    def infer_shape(ctx: InferShapeContext) -> None:
        for slot in ("indices", "inverse_indices", "counts"):
            ctx.set_dim(slot, [-1])

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        dtypes(ctx, Y=ctx.dtype("X"), indices="int64", inverse_indices="int64", counts="int64")


class OnnxTopK(OnnxOp, type="onnx_top_k"):
    r"""$$Values_i = X_{Indices_i}$$ the K largest or smallest along an axis; of equals the one that stands first."""

    X = Input("Tensor of rank 1 or more.")
    K = Input("int64 [1]: how many.")
    Values = Output("Shape of X, with K along the axis.")
    Indices = Output("int64, shape of Values.")
    axis = Attr(-1, "The axis.")
    largest = Attr(True, "The largest ones; else the smallest.")
    sorted = Attr(True, "In order; they always are.")
    expected_kernel_type = dtype_of("X")

    def infer_shape(ctx: InferShapeContext) -> None:
        dims, k = list(ctx.dim("X")), numbers(ctx, "K")
        if dims:
            axis = ctx.axis("X")
            known = k is None or dims[axis] < 0 or 0 <= k[0] <= dims[axis]
            ctx.require(known, f"K is {k} and X has shape {dims}; expected at most its size along axis {axis}")
            dims[axis] = -1 if k is None else k[0]
            ctx.set_dims("Values", [dims])
            ctx.set_dims("Indices", [dims])

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        dtypes(ctx, Values=ctx.dtype("X"), Indices="int64")


class OnnxOneHot(OnnxOp, type="onnx_one_hot"):
    r"""$$output_{i, d} = values_1$$ where $d = indices_i$, and $values_0$ elsewhere."""

    indices = Input("Numbers of any shape; negative ones count from the end.")
    depth = Input("One number: the size of the new axis.")
    values = Input("[2]: what is elsewhere, and what is at the place.")
    output = Output("Shape of indices with an axis more, dtype of values.")
    axis = Attr(-1, "The new axis.")
    expected_kernel_type = dtype_of("values")

    def infer_shape(ctx: InferShapeContext) -> None:
        dims, depth = list(ctx.dim("indices")), numbers(ctx, "depth")
        axis = ctx.attr("axis")
        dims.insert(axis if axis >= 0 else len(dims) + 1 + axis, -1 if depth is None else depth[0])
        ctx.set_dim("output", dims)

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        dtypes(ctx, output=ctx.dtype("values"))


class OnnxReverseSequence(OnnxOp, type="onnx_reverse_sequence"):
    r"""$$Y_{t, b} = input_{n_b - 1 - t,\, b}$$ for $t < n_b$, with $n$ the lengths; what lies behind stays."""

    input = Input("Tensor of rank 2 or more.")
    sequence_lens = Input("int64 [batch].")
    Y = Output("Shape of input.")
    batch_axis = Attr(1, "The axis of the batch: 0 or 1.").in_set([0, 1])
    time_axis = Attr(0, "The axis of time: 0 or 1.").in_set([0, 1])
    expected_kernel_type = dtype_of("input")

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.require(
            ctx.attr("batch_axis") != ctx.attr("time_axis"), "batch_axis and time_axis are one; expected 0 and 1"
        )
        same_shape(ctx, "input", "Y")


class OnnxNonMaxSuppression(OnnxOp, type="onnx_non_max_suppression"):
    r"""Boxes by score, with $$\frac{|A \cap B|}{|A \cup B|} \le iou\_threshold$$ for all taken before."""

    boxes = Input("float32 [batch, boxes, 4].")
    scores = Input("float32 [batch, classes, boxes].")
    max_output_boxes_per_class = Input("int64 [1]; none where it is absent.", dispensable=True)
    iou_threshold = Input("float32 [1]: the largest overlap, area in common over area of both.", dispensable=True)
    score_threshold = Input("float32 [1]: the score that a box has to exceed.", dispensable=True)
    selected_indices = Output("int64 [n, 3]: batch, class and box.")
    center_point_box = Attr(False, "Boxes are x and y of the centre, width and height; else two corners, y first.")
    expected_kernel_type = dtype_of("boxes")

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.require_rank("boxes", 3)
        ctx.require_rank("scores", 3)
        ctx.set_dim("selected_indices", [-1, 3])

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        dtypes(ctx, selected_indices="int64")


class OnnxArgReduce(OnnxOp, type="onnx_arg_reduce"):
    r"""$$reduced = \operatorname{argmax}_i data_i$$ along an axis, or the argmin; of equals the first or the last."""

    data = Input("Tensor of rank 1 or more.")
    reduced = Output("int64.")
    axis = Attr(0, "The axis.")
    keepdims = Attr(True, "The axis stays, with size 1.")
    largest = Attr(True, "The largest; else the smallest.")
    select_last_index = Attr(False, "Of equals the last.")

    def infer_shape(ctx: InferShapeContext) -> None:
        dims = list(ctx.dim("data"))
        if dims:
            axis = front_axis(ctx.attr("axis"), dims)
            dims[axis : axis + 1] = [1] if ctx.attr("keepdims") else []
            ctx.set_dim("reduced", dims)

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        dtypes(ctx, reduced="int64")
