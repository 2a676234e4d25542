"""Layers of nets: convolutions, pools, norms, resized images."""

from __future__ import annotations

from typing import Any

import numpy as np
from oprack.errors import UnimplementedError
from oprack.tensor import numpy_dtype
from oprack.types import VarType

from oprack_onnx.export.expressions import LAST, Expr, arange, constant, full, read, write
from oprack_onnx.export.graph import Call, exported
from oprack_onnx.export.tensors.shapes import int64, listed
from oprack_onnx.values import ELEM_TYPES


def windows(call: Call, rank: int) -> dict[str, Any]:
    """strides, pads and auto_pad of a convolution or pool."""
    pads = list(call.attr("paddings"))
    if len(pads) == rank:
        pads = pads + pads
    else:
        pads = pads[0::2] + pads[1::2]
    found: dict[str, Any] = {"strides": list(call.attr("strides"))}
    algorithm = call.attr("padding_algorithm")
    if algorithm == "SAME":
        if call.type.endswith("_transpose"):
            raise UnimplementedError("its padding is SAME, which ONNX means otherwise")
        return found | {"auto_pad": "SAME_UPPER"}
    return found | {"pads": [0] * (2 * rank) if algorithm == "VALID" else pads}


@exported("conv2d", "depthwise_conv2d", "conv3d", "conv2d_transpose", "depthwise_conv2d_transpose", "conv3d_transpose")
def conv(call: Call) -> None:
    call.refuse("data_format", "NCHW", "NCDHW", "AnyLayout")
    rank, transposed = call.rank("Filter") - 2, call.type.endswith("_transpose")
    attrs = windows(call, rank) | {"dilations": list(call.attr("dilations")), "group": call.attr("groups")}
    attrs["kernel_shape"] = list(call.dims("Filter")[2:])
    if "auto_pad" in attrs:
        attrs["dilations"] = [1] * rank  # as Paddle sets them
    if transposed:
        extra, size = call.attr("output_padding"), call.attr("output_size")
        if extra:
            attrs["output_padding"] = list(extra)
        elif size:
            if isinstance(size, str) or any(isinstance(s, str) for s in size) or min(call.dims("Input")[2:]) < 0:
                transposed_to_size(call, attrs)
                return
            image, pads = call.dims("Input")[2:], attrs.get("pads", [0] * (2 * rank))
            attrs["output_padding"] = [
                s - ((n - 1) * st - pads[i] - pads[rank + i] + d * (k - 1) + 1)
                for i, (s, n, st, d, k) in enumerate(
                    zip(size, image, attrs["strides"], attrs["dilations"], attrs["kernel_shape"], strict=True)
                )
            ]
    inputs = [call.input("Input"), call.input("Filter")]
    if call.has("Bias"):
        inputs.append(call.input("Bias"))
    call.set(call.node("ConvTranspose" if transposed else "Conv", *inputs, **attrs), "Output")


def transposed_to_size(call: Call, attrs: dict[str, Any]) -> None:
    """A transposed convolution with the most padding behind that there may be, of which the size cuts a part."""
    size = Expr(call.graph, listed(call, "output_size"), VarType.INT64)
    # what is added behind is less than a stride
    attrs["output_padding"] = [s - 1 for s in attrs["strides"]]
    bias = [read(call, "Bias")] if call.has("Bias") else []
    out = read(call, "Input").op("ConvTranspose", read(call, "Filter"), *bias, **attrs)
    for axis in range(len(attrs["strides"])):
        out = out.slice(0, size.slice(axis, axis + 1), axis + 2)
    write(call, out, "Output")


@exported("pool2d", "pool3d")
def pool(call: Call) -> None:
    call.refuse("data_format", "NCHW", "NCDHW", "AnyLayout")
    rank, size = call.rank() - 2, call.attr("ksize")
    maximum = call.attr("pooling_type") == "max"
    if isinstance(size, str) or any(isinstance(k, str) for k in size):
        raise UnimplementedError("its window is a variable")
    adaptive = call.attr("adaptive")
    if adaptive and maximum:
        raise UnimplementedError("its windows adapt to the image, and it takes the largest ones")
    if adaptive and any(k != 1 for k in size):
        adaptive_pool(call, list(size))
    elif call.attr("global_pooling") or adaptive:
        call.set(call.node("GlobalMaxPool" if maximum else "GlobalAveragePool", call.input()))
    else:
        attrs = windows(call, rank) | {"kernel_shape": list(size), "ceil_mode": int(call.attr("ceil_mode"))}
        if not maximum:
            attrs["count_include_pad"] = int(not call.attr("exclusive"))
            pads = attrs.get("pads", [0])
            if not call.attr("exclusive") and pads[: len(pads) // 2] != pads[len(pads) // 2 :]:
                raise UnimplementedError("it counts pads that differ before and behind, which Paddle does in part")
        call.set(call.node("MaxPool" if maximum else "AveragePool", call.input(), **attrs))


def adaptive_pool(call: Call, size: list[int]) -> None:
    """Means of windows that divide the image evenly, or a product with the share of each pixel along each axis."""
    image, x = call.dims()[2:], read(call)
    if min(image) >= 0 and all(n % k == 0 for n, k in zip(image, size, strict=True)):
        step = [n // k for n, k in zip(image, size, strict=True)]
        write(call, x.op("AveragePool", kernel_shape=step, strides=step))
        return
    rank = len(size) + 2
    for axis, k in enumerate(size, start=2):
        length, pixel = x.size(axis), arange(x.size(axis))
        cell = constant(call.graph, np.arange(k))
        starts, ends = cell * length / k, ((cell + 1) * length + (k - 1)) / k
        inside = (pixel.unsqueeze(1) >= starts) & (pixel.unsqueeze(1) < ends)  # [pixels, cells]
        share = inside.cast(x.dtype) / (ends - starts).cast(x.dtype)
        order = [*(i for i in range(rank) if i != axis), axis]
        x = (x.transpose(*order) @ share).transpose(*[int(i) for i in np.argsort(order)])
    write(call, x)


@exported("max_pool2d_with_index", "max_pool3d_with_index")
def max_pool_with_index(call: Call) -> None:
    x, rank = read(call), call.rank() - 2
    if call.attr("adaptive"):
        adaptive_max(call)
        return
    size = call.attr("ksize")
    attrs = {"strides": call.attr("strides"), "pads": list(call.attr("paddings")) * 2}
    if call.attr("global_pooling"):
        if min(call.dims()[2:]) < 0:
            raise UnimplementedError("it takes all of an image whose size is not known")
        size, attrs = list(call.dims()[2:]), {"strides": [1] * rank, "pads": [0] * (2 * rank)}
    out, where = x.ops("MaxPool", 2, dtypes=(x.dtype, VarType.INT64), kernel_shape=size, **attrs)
    plane = x.size(2)
    for axis in range(3, rank + 2):
        plane = plane * x.size(axis)
    write(call, out)
    write(call, where.op("Mod", plane).cast(VarType.INT32), "Mask")


def adaptive_max(call: Call) -> None:
    """The largest pixel of each cell, and the first place where it is."""
    x, size = read(call), call.attr("ksize")
    rank, lowest = len(size) + 2, np.finfo(numpy_dtype(call.dtype())).min
    place = arange(x.size(rank - 1))
    for axis in range(rank - 2, 1, -1):
        stride = x.size(rank - 1)
        for other in range(axis + 1, rank - 1):
            stride = stride * x.size(other)
        place = place + (arange(x.size(axis)) * stride).reshape(-1, *[1] * (rank - 1 - axis))
    value, where = x, place.op("Expand", x.shape())
    for axis, k in enumerate(size, start=2):
        length, pixel = value.size(axis), arange(value.size(axis))
        cell = constant(call.graph, np.arange(k)).unsqueeze(1)
        starts, ends = cell * length / k, ((cell + 1) * length + (k - 1)) / k
        inside = (pixel >= starts) & (pixel < ends)  # [cells, pixels]
        mask = inside.reshape(k, -1, *[1] * (rank - 1 - axis))
        wide = mask.select(value.unsqueeze(axis), lowest)
        best = wide.op("ArgMax", dtype=VarType.INT64, axis=axis + 1, keepdims=1)
        where = (
            where.unsqueeze(axis).op("Expand", wide.shape()).op("GatherElements", best, axis=axis + 1).squeeze(axis + 1)
        )
        value = wide.max(axis + 1)
    write(call, value)
    write(call, where.cast(VarType.INT32), "Mask")


@exported("unpool", "unpool3d")
def unpool(call: Call) -> None:
    x, rank = read(call), call.rank() - 2
    places = read(call, "Indices").cast(VarType.INT64)
    size = Expr(call.graph, listed(call, "output_size"), VarType.INT64)
    plane = size.reduce("Prod", [0], True)
    front = x.shape(0, 2)
    zeros = full(front.join(plane, axis=0), 0, x.dtype)
    flat = [v.op("Reshape", front.join(front.ints([-1]), axis=0)) for v in (places, x)]
    out = zeros.op("ScatterElements", *flat, axis=2)
    write(call, out.op("Reshape", front.join(size.slice(-rank, LAST), axis=0)))


@exported("batch_norm", "sync_batch_norm")
def batch_norm(call: Call) -> None:
    if not (call.attr("is_test") or call.attr("use_global_stats")) or call.attr("trainable_statistics"):
        raise UnimplementedError("it is written for training")
    call.refuse("data_layout", "NCHW", "AnyLayout")
    mean = read(call, "Mean")
    scale, bias = (
        read(call, slot).name if call.has(slot) else full(mean.shape(), fill, mean.dtype).name
        for slot, fill in (("Scale", 1), ("Bias", 0))
    )
    inputs = [call.input(), scale, bias, mean.name, call.input("Variance")]
    call.set(call.node("BatchNormalization", *inputs, epsilon=call.attr("epsilon")), "Y")
    for slot, source in (("MeanOut", "Mean"), ("VarianceOut", "Variance")):
        call.set(call.input(source), slot)


@exported("instance_norm")
def instance_norm(call: Call) -> None:
    channels = call.dims()[1]
    if channels < 0:
        raise UnimplementedError("the number of channels is not known")
    scale = call.input("Scale") if call.has("Scale") else call.graph.constant(np.ones(channels), np.float32)
    bias = call.input("Bias") if call.has("Bias") else call.graph.constant(np.zeros(channels), np.float32)
    call.set(call.node("InstanceNormalization", call.input(), scale, bias, epsilon=call.attr("epsilon")), "Y")


@exported("layer_norm")
def layer_norm(call: Call) -> None:
    axis, graph = call.attr("begin_norm_axis"), call.graph
    rest = call.dims()[axis:]
    if min(rest) < 0:
        raise UnimplementedError("the sizes that it takes together are not known")
    shape = graph.ints(rest)
    values = [call.input()]
    for slot, fill in (("Scale", 1.0), ("Bias", 0.0)):
        if call.has(slot):
            value = call.input(slot)
            values.append(value if len(rest) == 1 else call.node("Reshape", value, shape))
        else:
            values.append(graph.constant(np.full(rest, fill), numpy_dtype(call.dtype())))
    call.set(call.node("LayerNormalization", *values, axis=axis, epsilon=call.attr("epsilon")), "Y")
    x = read(call)
    flat = x.op("Flatten", axis=axis)
    mean = flat.mean(1)
    gap, leading = flat - mean.unsqueeze(1), x.shape(0, axis)
    write(call, mean.op("Reshape", leading), "Mean")
    write(call, (gap * gap).mean(1).op("Reshape", leading), "Variance")


@exported("group_norm")
def group_norm(call: Call) -> None:
    """Instances of groups, then a factor and a shift for each channel."""
    call.refuse("data_layout", "NCHW", "AnyLayout")
    groups, graph, x = call.attr("groups"), call.graph, call.input()
    flat = call.node("Reshape", x, graph.ints([0, groups, -1]))
    kind = numpy_dtype(call.dtype())
    ones, zeros = graph.constant(np.ones(groups), kind), graph.constant(np.zeros(groups), kind)
    normal = call.node("InstanceNormalization", flat, ones, zeros, epsilon=call.attr("epsilon"))
    out = call.node("Reshape", normal, call.node("Shape", x))
    shape = graph.ints([-1] + [1] * (call.rank() - 2))
    if call.has("Scale"):
        out = call.node("Mul", out, call.node("Reshape", call.input("Scale"), shape))
    if call.has("Bias"):
        out = call.node("Add", out, call.node("Reshape", call.input("Bias"), shape))
    call.set(out, "Y")


@exported("dropout")
def dropout(call: Call) -> None:
    if not call.attr("is_test"):
        raise UnimplementedError("it is written for training")
    x = call.input()
    if call.attr("dropout_implementation") == "upscale_in_train":
        call.set(call.node("Identity", x))
    else:
        call.set(call.node("Mul", x, call.graph.constant(1 - call.attr("dropout_prob"), np.float32)))


@exported("lrn")
def lrn(call: Call) -> None:
    attrs = {"size": call.attr("n"), "bias": call.attr("k"), "alpha": call.attr("alpha") * call.attr("n")}
    call.set(call.node("LRN", call.input(), beta=call.attr("beta"), **attrs))


_RESIZED = {"nearest": "nearest", "linear": "linear", "bilinear": "linear", "trilinear": "linear", "bicubic": "cubic"}


@exported(*(f"{kind}_interp{version}" for kind in _RESIZED for version in ("", "_v2")))
def interpolate(call: Call) -> None:
    call.refuse("data_layout", "NCHW")  # any other one is one with channels last, for Paddle
    x, mode = read(call), _RESIZED[call.type.partition("_")[0]]
    corners = call.attr("align_corners")
    if corners:
        places = "align_corners"
    elif mode == "nearest" or (mode == "linear" and call.attr("align_mode") == 1):
        places = "asymmetric"
    else:
        places = "half_pixel"
    attrs: dict[str, Any] = {"mode": mode, "coordinate_transformation_mode": places}
    if mode == "nearest":
        attrs["nearest_mode"] = "round_prefer_ceil" if corners else "floor"
    if mode == "cubic":
        attrs["cubic_coeff_a"] = -0.75
    x, sizes, scales = _resized(call, x, mode)
    if scales is not None:
        write(call, x.op("Resize", "", scales, **attrs))
    else:
        assert sizes is not None
        write(call, x.op("Resize", "", "", x.shape(0, 2).join(sizes, axis=0), **attrs))


def _resized(call: Call, x: Expr, mode: str) -> tuple[Expr, Expr | None, Expr | None]:
    """The image, and its size or the factors of all axes."""
    rank, scale, graph = call.rank() - 2, call.attr("scale"), call.graph
    if call.has("SizeTensor"):
        parts = [int64(call, "SizeTensor", i) for i in range(len(call.op.input("SizeTensor")))]
        return x, Expr(graph, call.node("Concat", *parts, axis=0), VarType.INT64), None
    if call.has("OutSize"):
        return x, Expr(graph, int64(call, "OutSize"), VarType.INT64), None
    if call.has("Scale"):
        factor = read(call, "Scale").cast(VarType.FP32).reshape(-1)
        factor = factor.expand(rank) if call.dims("Scale")[0] == 1 else factor
        return x, None, factor.like([1.0, 1.0]).join(factor, axis=0)
    if scale:
        factors = (scale if isinstance(scale, list) else [scale]) * rank
        return x, None, constant(graph, [1.0, 1.0, *factors[:rank]], VarType.FP32)
    wanted = [call.attr(n) for n in ("out_d", "out_h", "out_w")[-rank:]]
    if 1 in wanted and not call.attr("align_corners"):
        if mode == "cubic":
            raise UnimplementedError("it makes one row or column of an image")
        # of one place Paddle takes the first pixel, and ONNX the middle
        for axis in (i for i, n in enumerate(wanted, start=2) if n == 1):
            x = x.slice(0, 1, axis)
    return x, constant(graph, wanted), None


@exported("pixel_shuffle", "space_to_depth")
def pixels(call: Call) -> None:
    if call.type == "pixel_shuffle":
        call.refuse("data_format", "NCHW")
        call.set(call.node("DepthToSpace", call.input(), blocksize=call.attr("upscale_factor"), mode="CRD"))
    else:
        # Paddle takes the blocks from the channels: one transposition, which is not ONNX's SpaceToDepth
        x, b = read(call), call.attr("blocksize")
        n, h, w = x.size(0), x.size(2), x.size(3)
        wide = x.reshape(n, b, b, -1, h, w).transpose(0, 3, 4, 1, 5, 2)
        write(call, wide.reshape(n, -1, h / b, w / b))


@exported("grid_sampler")
def grid_sampler(call: Call) -> None:
    mode = {"bilinear": "linear", "nearest": "nearest"}[call.attr("mode")]
    attrs = {"mode": mode, "padding_mode": call.attr("padding_mode"), "align_corners": int(call.attr("align_corners"))}
    call.set(call.node("GridSample", call.input(), call.input("Grid"), **attrs), "Output")


@exported("gaussian_random", "uniform_random")
def random(call: Call) -> None:
    dtype = VarType(call.attr("dtype"))
    normal = call.type == "gaussian_random"
    attrs: dict[str, Any] = {"dtype": ELEM_TYPES[dtype]}
    attrs |= (
        {"mean": call.attr("mean"), "scale": call.attr("std")}
        if normal
        else {"low": call.attr("min"), "high": call.attr("max")}
    )
    op = "RandomNormal" if normal else "RandomUniform"
    if call.has("ShapeTensor") or call.has("ShapeTensorList"):
        like = call.node("ConstantOfShape", listed(call, "shape", "ShapeTensor", "ShapeTensorList"))
        call.set(call.node(f"{op}Like", like, **attrs), dtype=dtype)
    else:
        call.set(str(call.graph.node(op, [], shape=list(call.attr("shape")), **attrs)), dtype=dtype)


@exported("deformable_conv")
def deformable_conv(call: Call) -> None:
    inputs = [call.input("Input"), call.input("Filter"), call.input("Offset"), ""]
    if call.has("Mask"):
        inputs.append(call.input("Mask"))
    pads = list(call.attr("paddings"))
    attrs = {"strides": list(call.attr("strides")), "pads": pads * 2, "dilations": list(call.attr("dilations"))}
    attrs |= {"group": call.attr("groups"), "offset_group": call.attr("deformable_groups")}
    call.set(call.node("DeformConv", *inputs, **attrs), "Output")


# Recurrent layers -----------------------------------------------------------------------------------------------------
_GATES = {"LSTM": [0, 3, 1, 2], "GRU": [1, 0, 2], "RNN_TANH": [0], "RNN_RELU": [0]}
"""Mode -> which of Paddle's gates each of ONNX's is."""


@exported("rnn")
def rnn(call: Call) -> None:
    """A node for each layer; gates of the weights in another order, both directions in one tensor."""
    lengths = call.graph.cast(call.input("SequenceLength"), VarType.INT32) if call.has("SequenceLength") else ""
    mode, hidden, layers = call.attr("mode"), call.attr("hidden_size"), call.attr("num_layers")
    directions = 2 if call.attr("is_bidirec") else 1
    readers = {n for op in call.graph.block.ops for n in op.input_arg_names()}
    if lengths and directions == 2 and readers & set(call.op.output("State")):
        raise UnimplementedError("the last states of two directions are read, of sequences of several lengths")
    order = _GATES[mode]
    count = len(call.op.input("WeightList"))
    every = [read(call, "WeightList", i) for i in range(count)]
    rows = np.concatenate([np.arange(g * hidden, (g + 1) * hidden) for g in order])
    cells, biases = every[: count // 2], every[count // 2 :]
    x, lasts = call.input("Input"), []

    def stacked(values: list[Expr]) -> Expr:
        turned = [v.gather(rows).unsqueeze(0) for v in values]
        return turned[0].join(*turned[1:], axis=0) if len(turned) > 1 else turned[0]

    for layer in range(layers):
        first = layer * directions * 2
        w, r, *b = (
            stacked([part[first + 2 * d + k] for d in range(directions)]) for part in (cells, biases) for k in (0, 1)
        )
        bias = b[0].join(b[1], axis=1)
        states = [
            call.node(
                "Slice",
                call.input("PreState", k),
                *(call.graph.ints([v]) for v in (layer * directions, (layer + 1) * directions, 0)),
            )
            for k in range(len(call.op.input("PreState")))
        ]
        inputs = [x, w.name, r.name, bias.name, lengths, *states]
        attrs: dict[str, Any] = {"hidden_size": hidden, "direction": "bidirectional" if directions == 2 else "forward"}
        if mode == "GRU":
            attrs["linear_before_reset"] = 1
        elif mode == "RNN_RELU":
            attrs["activations"] = ["Relu"] * directions
        op = mode.partition("_")[0]
        found = call.graph.node(op, inputs, 3 if op == "LSTM" else 2, **attrs)
        lasts.append(found[1:])
        # [steps, directions, batch, hidden] as [steps, batch, directions * hidden]
        x = call.node("Reshape", call.node("Transpose", found[0], perm=[0, 2, 1, 3]), call.graph.ints([0, 0, -1]))
    call.set(x)
    for k in range(len(call.op.output("State"))):
        call.set(call.node("Concat", *(last[k] for last in lasts), axis=0), "State", k)
