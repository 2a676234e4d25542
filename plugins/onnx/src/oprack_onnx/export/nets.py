"""Layers of nets: convolutions, pools, norms, resized images."""

from __future__ import annotations

from typing import Any

import numpy as np
from oprack.errors import UnimplementedError
from oprack.types import VarType

from oprack_onnx.export.graph import Call, exported
from oprack_onnx.export.shapes import int64, listed
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
        return found | {"auto_pad": "SAME_UPPER"}
    return found | {"pads": [0] * (2 * rank) if algorithm == "VALID" else pads}


@exported("conv2d", "depthwise_conv2d", "conv3d", "conv2d_transpose", "depthwise_conv2d_transpose", "conv3d_transpose")
def conv(call: Call) -> None:
    call.refuse("data_format", "NCHW", "NCDHW", "AnyLayout")
    rank, transposed = call.rank("Filter") - 2, call.type.endswith("_transpose")
    attrs = windows(call, rank) | {"dilations": list(call.attr("dilations")), "group": call.attr("groups")}
    attrs["kernel_shape"] = list(call.dims("Filter")[2:])
    if transposed:
        extra, size = call.attr("output_padding"), call.attr("output_size")
        if extra:
            attrs["output_padding"] = list(extra)
        elif size:
            if isinstance(size, str) or any(isinstance(s, str) for s in size):
                raise UnimplementedError("its output_size is a variable")
            image, pads = call.dims("Input")[2:], attrs.get("pads", [0] * (2 * rank))
            if min(image) < 0:
                raise UnimplementedError("its output_size is given and the size of its image is not known")
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


@exported("pool2d", "pool3d")
def pool(call: Call) -> None:
    call.refuse("data_format", "NCHW", "NCDHW", "AnyLayout")
    rank, size = call.rank() - 2, call.attr("ksize")
    maximum = call.attr("pooling_type") == "max"
    if isinstance(size, str) or any(isinstance(k, str) for k in size):
        raise UnimplementedError("its window is a variable")
    if call.attr("adaptive") and any(k != 1 for k in size):
        adaptive_pool(call, list(size), maximum)
    elif call.attr("global_pooling") or call.attr("adaptive"):
        call.set(call.node("GlobalMaxPool" if maximum else "GlobalAveragePool", call.input()))
    else:
        attrs = windows(call, rank) | {"kernel_shape": list(size), "ceil_mode": int(call.attr("ceil_mode"))}
        if not maximum:
            attrs["count_include_pad"] = int(not call.attr("exclusive"))
        call.set(call.node("MaxPool" if maximum else "AveragePool", call.input(), **attrs))


def adaptive_pool(call: Call, size: list[int], maximum: bool) -> None:
    """Windows that divide the image evenly, or cells that are cut out one by one."""
    image = call.dims()[2:]
    if min(image) < 0:
        raise UnimplementedError("it is adaptive and the size of its image is not known")
    if all(n % k == 0 for n, k in zip(image, size, strict=True)):
        step = [n // k for n, k in zip(image, size, strict=True)]
        call.set(call.node("MaxPool" if maximum else "AveragePool", call.input(), kernel_shape=step, strides=step))
        return
    x, graph = call.input(), call.graph
    for axis, (n, k) in enumerate(zip(image, size, strict=True), start=2):
        cells = []
        for i in range(k):
            start, end = i * n // k, -(-(i + 1) * n // k)
            cell = call.node("Slice", x, graph.ints([start]), graph.ints([end]), graph.ints([axis]))
            cells.append(call.node("ReduceMax" if maximum else "ReduceMean", cell, graph.ints([axis]), keepdims=1))
        x = call.node("Concat", *cells, axis=axis)
    call.set(x)


@exported("batch_norm", "sync_batch_norm")
def batch_norm(call: Call) -> None:
    if not (call.attr("is_test") or call.attr("use_global_stats")):
        raise UnimplementedError("it is written for training")
    call.refuse("data_layout", "NCHW", "AnyLayout")
    inputs = [call.input(slot) for slot in ("X", "Scale", "Bias", "Mean", "Variance")]
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
            values.append(graph.constant(np.full(rest, fill), np.float32))
    call.set(call.node("LayerNormalization", *values, axis=axis, epsilon=call.attr("epsilon")), "Y")


@exported("group_norm")
def group_norm(call: Call) -> None:
    """Instances of groups, then a factor and a shift for each channel."""
    call.refuse("data_layout", "NCHW", "AnyLayout")
    groups, graph, x = call.attr("groups"), call.graph, call.input()
    flat = call.node("Reshape", x, graph.ints([0, groups, -1]))
    ones, zeros = graph.constant(np.ones(groups), np.float32), graph.constant(np.zeros(groups), np.float32)
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


@exported("nearest_interp_v2", "bilinear_interp_v2", "bicubic_interp_v2", "nearest_interp", "bilinear_interp")
def interpolate(call: Call) -> None:
    call.refuse("data_layout", "NCHW")
    graph, x = call.graph, call.input()
    kind = call.type.partition("_")[0]
    mode = {"nearest": "nearest", "bilinear": "linear", "bicubic": "cubic"}[kind]
    if call.attr("align_corners"):
        places = "align_corners"
    elif kind == "nearest" or (kind == "bilinear" and call.attr("align_mode") == 1):
        places = "asymmetric"
    else:
        places = "half_pixel"
    if kind == "nearest" and call.attr("align_corners"):
        raise UnimplementedError("it takes the nearest pixel with align_corners")
    attrs: dict[str, Any] = {"mode": mode, "coordinate_transformation_mode": places}
    if kind == "nearest":
        attrs["nearest_mode"] = "floor"
    front = call.node("Shape", x, start=0, end=2)
    sizes, scale = None, call.attr("scale")
    if call.has("SizeTensor"):
        sizes = call.node(
            "Concat", *(int64(call, "SizeTensor", i) for i in range(len(call.op.input("SizeTensor")))), axis=0
        )
    elif call.has("OutSize"):
        sizes = int64(call, "OutSize")
    elif call.has("Scale"):
        raise UnimplementedError("its factor is a tensor")
    elif scale:
        factors = scale if isinstance(scale, list) else [scale, scale]
        call.set(call.node("Resize", x, "", graph.constant([1.0, 1.0, *(factors * 2)[:2]], np.float32), **attrs))
        return
    else:
        sizes = graph.ints([call.attr("out_h"), call.attr("out_w")])
    call.set(call.node("Resize", x, "", "", call.node("Concat", front, sizes, axis=0), **attrs))


@exported("pixel_shuffle", "space_to_depth")
def pixels(call: Call) -> None:
    if call.type == "pixel_shuffle":
        call.refuse("data_format", "NCHW")
        call.set(call.node("DepthToSpace", call.input(), blocksize=call.attr("upscale_factor"), mode="CRD"))
    else:
        call.set(call.node("SpaceToDepth", call.input(), blocksize=call.attr("blocksize")))


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
    order = _GATES[mode]
    names = call.op.input("WeightList")
    arrays = [call.graph.initializers.get(call.graph.value(n)) for n in names]
    if any(a is None for a in arrays):
        raise UnimplementedError("its weights are no parameters")
    rows = np.concatenate([np.arange(g * hidden, (g + 1) * hidden) for g in order])
    cells, biases = arrays[: len(arrays) // 2], arrays[len(arrays) // 2 :]
    x, lasts = call.input("Input"), []
    for layer in range(layers):
        first = layer * directions * 2
        w = np.stack([np.asarray(cells[first + 2 * d])[rows] for d in range(directions)])
        r = np.stack([np.asarray(cells[first + 2 * d + 1])[rows] for d in range(directions)])
        b = np.stack(
            [np.concatenate([np.asarray(biases[first + 2 * d + k])[rows] for k in (0, 1)]) for d in range(directions)]
        )
        states = [
            call.node(
                "Slice",
                call.input("PreState", k),
                *(call.graph.ints([v]) for v in (layer * directions, (layer + 1) * directions, 0)),
            )
            for k in range(len(call.op.input("PreState")))
        ]
        inputs = [x, *(call.graph.constant(v, np.float32) for v in (w, r, b)), lengths, *states]
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
