"""Shapes changed by numbers that only a run knows; images padded and resized."""

from __future__ import annotations

from oprack.op import REQUIRED, Attr, InferShapeContext, InferVarTypeContext, Input, Output, dtype_of
from oprack.types import AttrType, dtype_name

from oprack_onnx_ops.ops._common import OnnxOp, dtypes, numbers, optional_ints


class OnnxReshape(OnnxOp, type="onnx_reshape"):
    r"""$$reshaped = data$$ in another shape, in which 0 may be meant as 0."""

    data = Input("Tensor of any shape.")
    shape = Input("int64 [n]; -1, once at most, stands for what is left.")
    reshaped = Output("Of this shape.")
    allowzero = Attr(False, "A 0 is a size; else it stands for the size that data has there.")
    expected_kernel_type = dtype_of("data")

    def infer_shape(ctx: InferShapeContext) -> None:
        wanted, rank = numbers(ctx, "shape"), ctx.dim("shape")
        if wanted is None:
            ctx.set_dim("reshaped", [-1] * rank[0]) if rank and rank[0] >= 0 else None


class OnnxExpand(OnnxOp, type="onnx_expand"):
    r"""$$output = input$$ repeated along axes of size 1, so that its shape broadcasts with `shape`."""

    input = Input("Tensor of any shape.")
    shape = Input("int64 [n].")
    output = Output("The broadcast shape.")
    expected_kernel_type = dtype_of("input")

    def infer_shape(ctx: InferShapeContext) -> None:
        dims, wanted = list(ctx.dim("input")), numbers(ctx, "shape")
        if wanted is None:
            return
        rank = max(len(dims), len(wanted))
        dims, wanted = [1] * (rank - len(dims)) + dims, [1] * (rank - len(wanted)) + wanted
        fits = all(a == b or 1 in (a, b) for a, b in zip(dims, wanted, strict=True))
        ctx.require(fits, f"input has shape {dims} and shape is {wanted}; expected sizes that are equal, or 1")
        ctx.set_dim("output", [b if a == 1 else a for a, b in zip(dims, wanted, strict=True)])


class OnnxSplit(OnnxOp, type="onnx_split"):
    r"""$$outputs_i = input_{[n_i, n_{i+1})}$$ along an axis, with sums $n_i$ of the sizes before."""

    input = Input("Tensor of rank 1 or more.")
    split = Input("int64 [n]: their sizes; equal ones without, the last may be smaller.", dispensable=True)
    outputs = Output("The parts.", duplicable=True)
    axis = Attr(0, "The axis.")
    expected_kernel_type = dtype_of("input")

    def infer_shape(ctx: InferShapeContext) -> None:
        dims, sizes, count = list(ctx.dim("input")), numbers(ctx, "split"), ctx.output_count("outputs")
        if not dims:
            return
        axis = ctx.axis("input")
        if sizes is None and not ctx.has_input("split") and dims[axis] >= 0:
            part = -(-dims[axis] // count)
            sizes = [part] * (count - 1) + [dims[axis] - part * (count - 1)]
        for i in range(count):
            dims[axis] = -1 if sizes is None or i >= len(sizes) else sizes[i]
            ctx.set_dim("outputs", dims, i)


class OnnxPad(OnnxOp, type="onnx_pad"):
    r"""$$output_{i + before} = data_i$$ with elements put before and behind each axis, or taken away."""

    data = Input("Tensor of any shape.")
    pads = Input("int64 [2 n]: how many before each axis, then how many behind each.")
    constant_value = Input("One element of data's dtype; 0 where it is absent.", dispensable=True)
    axes = Input("Integers: the axes; all where it is absent.", dispensable=True)
    output = Output("Rank of data.")
    mode = Attr("constant", "What is put there.").in_set(["constant", "reflect", "edge", "wrap"])
    expected_kernel_type = dtype_of("data")

    def infer_shape(ctx: InferShapeContext) -> None:
        dims, pads = list(ctx.dim("data")), numbers(ctx, "pads")
        if pads is None:
            ctx.set_dim("output", [-1] * len(dims))
            return
        axes = numbers(ctx, "axes") if ctx.has_input("axes") else list(range(len(dims)))
        assert axes is not None
        ctx.require(len(pads) == 2 * len(axes), f"pads is {pads}; expected two numbers for each of {len(axes)} axes")
        for i, axis in enumerate(axes):
            ctx.require(-len(dims) <= axis < len(dims), f"axes is {axes}; expected axes of data, of shape {dims}")
            dims[axis] += pads[i] + pads[len(axes) + i]
        ctx.require_sizes("the shape of output", dims)
        ctx.set_dim("output", dims)


class OnnxResize(OnnxOp, type="onnx_resize"):
    r"""$$Y_p = X(place(p))$$ with X interpolated between its places, axis by axis."""

    X = Input("Tensor of rank 1 or more.")
    roi = Input("Starts, then ends of the part to resize, for tf_crop_and_resize.", dispensable=True)
    scales = Input("float32 [n]: new size over old one.", dispensable=True)
    sizes = Input("int64 [n]: the new sizes.", dispensable=True)
    Y = Output("Rank of X.")
    mode = Attr("nearest", "How elements between places are found.").in_set(["nearest", "linear", "cubic"])
    coordinate_transformation_mode = Attr("half_pixel", "How places of Y become places of X.").in_set(
        [
            "half_pixel",
            "half_pixel_symmetric",
            "pytorch_half_pixel",
            "align_corners",
            "asymmetric",
            "tf_crop_and_resize",
            "tf_half_pixel_for_nn",
        ]
    )
    nearest_mode = Attr("round_prefer_floor", "How a place is rounded.").in_set(
        ["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"]
    )
    keep_aspect_ratio_policy = Attr("stretch", "What sizes mean.").in_set(["stretch", "not_larger", "not_smaller"])
    cubic_coeff_a = Attr(-0.75, "The coefficient of cubic interpolation.")
    exclude_outside = Attr(False, "Places outside weigh nothing.")
    extrapolation_value = Attr(0.0, "What is outside, for tf_crop_and_resize.")
    antialias = Attr(False, "Widen the filter where it gets smaller.")
    axes = optional_ints("The axes that roi, scales and sizes speak of; all where it is empty.")
    expected_kernel_type = dtype_of("X")

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.set_dim("Y", [-1] * len(ctx.dim("X")))


class OnnxTrilu(OnnxOp, type="onnx_trilu"):
    r"""$$output_{i,j} = input_{i,j}$$ where $j - i \ge k$ (upper) or $j - i \le k$ (lower), and 0 elsewhere."""

    input = Input("Tensor of rank 2 or more.")
    k = Input("int64: the diagonal; 0 where it is absent.", dispensable=True)
    output = Output("Shape of input.")
    upper = Attr(True, "The upper part; else the lower one.")
    expected_kernel_type = dtype_of("input")

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.set_dim("output", ctx.dim("input"))


class OnnxEyeLike(OnnxOp, type="onnx_eye_like"):
    r"""$$output_{i,j} = 1$$ where $j - i = k$, and 0 elsewhere."""

    input = Input("Tensor of rank 2; its shape is read.")
    output = Output("Shape of input.")
    k = Attr(0, "The diagonal.")
    dtype = Attr(-1, "The dtype; -1 stands for that of input.")

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.set_dim("output", ctx.require_rank("input", 2))

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        dtype = ctx.attr("dtype")
        dtypes(ctx, output=ctx.dtype("input") if dtype < 0 else dtype_name(dtype))


class OnnxCol2Im(OnnxOp, type="onnx_col2im"):
    r"""$$output_q = \sum_{(i, p): place(i, p) = q} input_{i,p}$$ blocks put back into an image."""

    input = Input("[batch, channels * elements of a block, blocks].")
    image_shape = Input("int64: the sizes of the image.")
    block_shape = Input("int64: the sizes of a block.")
    output = Output("[batch, channels, *image_shape].")
    dilations = optional_ints("Between elements of a block.")
    pads = optional_ints("Of the image: before each axis, then behind each.")
    strides = optional_ints("From block to block.")
    expected_kernel_type = dtype_of("input")

    def infer_shape(ctx: InferShapeContext) -> None:
        dims, image, block = ctx.require_rank("input", 3), numbers(ctx, "image_shape"), numbers(ctx, "block_shape")
        if image is not None and block is not None:
            elements = 1
            for size in block:
                elements *= size
            ctx.require(elements > 0, f"block_shape is {block}; expected sizes of 1 or more")
            ctx.set_dim("output", [dims[0], dims[1] // elements, *image])


class OnnxBitCast(OnnxOp, type="onnx_bit_cast"):
    r"""$$bits(output) = bits(input)$$ with a dtype of the same width."""

    input = Input("Tensor of any shape.")
    output = Output("Shape of input.")
    to = Attr(REQUIRED, "The dtype.", type=AttrType.INT)

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.set_dim("output", ctx.dim("input"))

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        dtypes(ctx, output=dtype_name(ctx.attr("to")))


class OnnxDropout(OnnxOp, type="onnx_dropout"):
    r"""$$output = data \cdot mask / (1 - ratio)$$ when training; mask is true with probability 1 - ratio."""

    data = Input("Tensor of any shape.")
    ratio = Input("One number: 0.5 where it is absent.", dispensable=True)
    training_mode = Input("One bool: false where it is absent.", dispensable=True)
    output = Output("Shape of data.")
    mask = Output("bool, shape of data.", dispensable=True)
    seed = Attr(0, "Of the random numbers.")
    expected_kernel_type = dtype_of("data")

    def infer_shape(ctx: InferShapeContext) -> None:
        for slot in ("output", "mask"):
            ctx.set_dim(slot, ctx.dim("data"))

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        dtypes(ctx, output=ctx.dtype("data"), mask="bool")
