"""Blocks of convolution nets and of attention, for oprack.testing.fuzz: the families that image models are made of."""

from __future__ import annotations

from typing import Any

from oprack.testing.fuzz import Net, block

ACTIVATIONS = {
    "relu": {},
    "relu6": {"threshold": 6.0},
    "hard_swish": {},
    "hard_sigmoid": {"slope": 0.2, "offset": 0.5},
    "sigmoid": {},
    "leaky_relu": {"alpha": 0.1},
    "swish": {"beta": 1.0},
    "gelu": {},
    "tanh": {},
}


def convolution(
    net: Net, x: str, channels: int, width: int = 1, stride: int = 1, groups: int = 1, pad: int | None = None
) -> str:
    """A convolution with a square filter; "same" padding unless it is given."""
    filters = net.param([channels, net.channels(x) // groups, width, width])
    pads = [width // 2 if pad is None else pad] * 2
    kind = "depthwise_conv2d" if groups > 1 and groups == net.channels(x) == channels else "conv2d"
    attrs = {"strides": [stride] * 2, "paddings": pads, "groups": groups}
    return net.op(kind, {"Input": x, "Filter": filters}, attrs)


def normalised(net: Net, x: str) -> str:
    """A batch_norm in test mode, which writes its statistics back as Paddle's models have it."""
    c = net.channels(x)
    mean, variance = net.param([c]), net.param([c], fill="positive")
    inputs = {"X": [x], "Scale": [net.param([c])], "Bias": [net.param([c])], "Mean": [mean], "Variance": [variance]}
    y = net.name()
    outputs = {"Y": [y], "MeanOut": [mean], "VarianceOut": [variance]}
    outputs |= {"SavedMean": [net.name()], "SavedVariance": [net.name()]}
    net.append("batch_norm", inputs, outputs, {"is_test": True})
    return y


def activated(net: Net, x: str, *kinds: str) -> str:
    """One of the activations, or none."""
    kind = net.choose(*(kinds or ("relu", "", *list(ACTIVATIONS)[1:])))
    return net.op(kind, {"X": x}, ACTIVATIONS[kind]) if kind else x


def biased(net: Net, x: str) -> str:
    """A bias of the channels, as a layer without batch_norm has it."""
    return net.op("elementwise_add", {"X": x, "Y": net.param([net.channels(x)])}, {"axis": 1})


def finished(net: Net, x: str) -> str:
    """What stands behind a convolution: batch_norm or a bias or nothing, and an activation."""
    x = net.choose(normalised, biased, lambda net, x: x)(net, x)
    return activated(net, x)


@block(takes="image", gives="image")
def conv_bn_act(net: Net, x: str) -> str:
    """Plain convolution, of any stride, padding and groups."""
    c = net.channels(x)
    groups = net.choose(1, *[g for g in (2, 4, c) if c % g == 0])
    channels = groups * net.choose(2, 1, 3, 4)
    width = net.choose(1, 3, 2, 5)
    return finished(
        net, convolution(net, x, channels, width, net.choose(1, 2, 3), groups, net.choose(width // 2, 0, 1))
    )


def _shortcut(net: Net, x: str, channels: int, stride: int) -> str:
    """The input, or its projection where the dims would not fit."""
    if channels == net.channels(x) and stride == 1 and net.flag():
        return x
    return normalised(net, convolution(net, x, channels, 1, stride))


def _residual(net: Net, x: str, widths: list[tuple[int, int, int]], first: bool) -> str:
    """Convolutions of (channels, width, stride) with a shortcut around them. first: activation first (v2)."""
    stride = 1
    y = activated(net, normalised(net, x), "relu") if first else x
    start = y if first else x
    for i, (channels, width, step) in enumerate(widths):
        y = convolution(net, y, channels, width, step)
        stride *= step
        if i + 1 < len(widths) or not first:
            y = normalised(net, y)
        if i + 1 < len(widths):
            y = activated(net, y, "relu", "relu6", "leaky_relu")
    total = net.op("elementwise_add", {"X": _shortcut(net, start, widths[-1][0], stride), "Y": y})
    return total if first else activated(net, total, "relu", "")


@block(takes="image", gives="image")
def residual_basic(net: Net, x: str) -> str:
    """ResNet's block of two 3x3 convolutions, v1 or v2; the stride may be in either."""
    channels, strides = net.choose(4, net.channels(x), 6), net.choose((1, 1), (2, 1), (1, 2))
    return _residual(net, x, [(channels, 3, strides[0]), (channels, 3, strides[1])], net.flag())


@block(takes="image", gives="image")
def residual_bottleneck(net: Net, x: str) -> str:
    """ResNet's 1x1, 3x3, 1x1; the stride may be in the first (v1) or the second convolution (v1.5)."""
    inner, strides = net.choose(4, 2, 3), net.choose((1, 1), (2, 1), (1, 2))
    outer = net.choose(4 * inner, net.channels(x))
    return _residual(net, x, [(inner, 1, strides[0]), (inner, 3, strides[1]), (outer, 1, 1)], net.flag())


@block(takes="image", gives="image")
def depthwise_separable(net: Net, x: str) -> str:
    """MobileNet v1: a depthwise convolution and a 1x1 one."""
    c = net.channels(x)
    x = finished(net, convolution(net, x, c, net.choose(3, 5), net.choose(1, 2), c))
    return finished(net, convolution(net, x, net.choose(4, 8, 3)))


@block(takes="image", gives="image")
def inverted_residual(net: Net, x: str) -> str:
    """MobileNet v2 and v3: wide depthwise convolution between two 1x1, perhaps with squeeze-excite and a shortcut."""
    c, stride = net.channels(x), net.choose(1, 2)
    wide = c * net.choose(2, 3)
    y = activated(net, normalised(net, convolution(net, x, wide)), "relu6", "hard_swish", "relu")
    y = activated(net, normalised(net, convolution(net, y, wide, 3, stride, wide)), "relu6", "hard_swish", "relu")
    if net.flag():
        y = squeeze_excite(net, y)
    out = net.choose(c, 4)
    y = normalised(net, convolution(net, y, out))
    return net.op("elementwise_add", {"X": x, "Y": y}) if stride == 1 and out == c else y


@block(takes="image", gives="image")
def squeeze_excite(net: Net, x: str) -> str:
    """The mean of each channel through two small layers scales the channel."""
    c = net.channels(x)
    s = net.op("pool2d", {"X": x}, {"pooling_type": "avg", "ksize": [1, 1], "global_pooling": True})
    s = net.choose(biased, lambda net, x: x)(net, convolution(net, s, max(1, c // net.choose(2, 4))))
    s = activated(net, s, "relu", "swish")
    s = net.choose(biased, lambda net, x: x)(net, convolution(net, s, c))
    s = activated(net, s, "hard_sigmoid", "sigmoid")
    return net.op("elementwise_mul", {"X": x, "Y": s} if net.flag() else {"X": s, "Y": x}, {"axis": -1})


@block(takes="image", gives="image")
def inception(net: Net, x: str) -> str:
    """Branches of convolutions and a pool, joined by concat along the channels."""
    branches = [finished(net, convolution(net, x, net.choose(2, 4)))]
    if net.flag():
        y = finished(net, convolution(net, x, net.choose(2, 3)))
        branches.append(finished(net, convolution(net, y, net.choose(4, 2), net.choose(3, 5))))
    kind = net.choose("max", "avg")
    y = net.op("pool2d", {"X": x}, {"pooling_type": kind, "ksize": [3, 3], "strides": [1, 1], "paddings": [1, 1]})
    branches.append(finished(net, convolution(net, y, net.choose(2, 4))))
    return net.op("concat", {"X": branches}, {"axis": 1})


@block(takes="image", gives="image")
def pool(net: Net, x: str) -> str:
    """Maximum or mean of windows."""
    k = net.choose(2, 3, 1)
    attrs: dict[str, Any] = {"ksize": [k, k], "strides": [net.choose(2, 1)] * 2}
    attrs |= {"paddings": [net.choose(0, k // 2)] * 2}
    attrs |= {"pooling_type": net.choose("max", "avg"), "ceil_mode": net.flag(), "exclusive": net.flag()}
    return net.op("pool2d", {"X": x}, attrs)


def _upsampled(net: Net, x: str) -> str:
    """Twice as large, by a factor or, where the dims are stated, by their numbers."""
    old = net.flag()
    attrs: dict[str, Any] = {"interp_method": "nearest", "align_corners": False}
    h, w = net.shape(x)[2:]
    if h > 0 and w > 0 and net.flag():
        attrs |= {"out_h": 2 * h, "out_w": 2 * w}
    else:
        attrs["scale"] = 2.0 if old else [2.0, 2.0]
    return net.op("nearest_interp" if old else "nearest_interp_v2", {"X": x}, attrs)


@block(takes="image", gives="image")
def upsampled_convolution(net: Net, x: str) -> str:
    """A decoder's: upsampled, and a convolution behind it."""
    return finished(net, convolution(net, _upsampled(net, x), net.choose(4, 2, 8), net.choose(1, 3)))


@block(takes="image", gives="image")
def pyramid(net: Net, x: str) -> str:
    """FPN: a coarser map, upsampled, is added to a finer one (which has twice its dims if those are even)."""
    c = net.choose(4, 2)
    fine = convolution(net, x, c)
    coarse = convolution(net, convolution(net, x, c, 2, 2, pad=0), c)
    total = net.op("elementwise_add", {"X": fine, "Y": _upsampled(net, coarse)})
    return finished(net, convolution(net, total, c, 3))


@block(takes="image", gives="image")
def transposed(net: Net, x: str) -> str:
    """A transposed convolution, or two in a row as a decoder of text regions has them."""
    for _ in range(net.choose(1, 2)):
        k = net.choose(2, 3)
        filters = net.param([net.channels(x), net.choose(2, 4, 1), k, k])
        x = net.op("conv2d_transpose", {"Input": x, "Filter": filters}, {"strides": [2, 2], "paddings": [0, 0]})
        x = activated(net, net.choose(normalised, biased, lambda net, x: x)(net, x), "relu", "sigmoid", "")
    return x


@block(takes="image", gives="image")
def affine(net: Net, x: str) -> str:
    """An affine_channel, as detection models have it behind convolutions."""
    c = net.channels(x)
    inputs = {"X": x, "Scale": net.param([c]), "Bias": net.param([c])}
    return net.op("affine_channel", inputs, {"data_layout": "NCHW"})


@block(takes="steps", gives="steps")
def attention(net: Net, x: str) -> str:
    """Scaled dot product attention of one or more heads, with projections and perhaps a mask."""
    d = net.channels(x)
    heads = net.choose(*[h for h in (1, 2, 4) if d % h == 0])

    def projected() -> str:
        y = net.op("matmul_v2", {"X": x, "Y": net.param([d, d])})
        y = net.op("elementwise_add", {"X": y, "Y": net.param([d])}, {"axis": 2}) if net.flag() else y
        y = net.op("reshape2", {"X": y}, {"shape": [0, 0, heads, d // heads]})
        return net.op("transpose2", {"X": y}, {"axis": [0, 2, 1, 3]})

    q, k, v = projected(), projected(), projected()
    factor = {"scale": float(d // heads) ** -0.5}
    q = net.op("scale", {"X": q}, factor) if net.flag() else q
    scores = net.op("matmul_v2", {"X": q, "Y": k}, {"trans_y": True})
    scores = net.op("scale", {"X": scores}, factor) if net.flag() else scores
    if net.flag():
        scores = net.op("elementwise_add", {"X": scores, "Y": net.feed(["N", 1, 1, "T"])}, {"axis": -1})
    y = net.op("matmul_v2", {"X": net.op("softmax", {"X": scores}, {"axis": -1}), "Y": v})
    y = net.op("transpose2", {"X": y}, {"axis": [0, 2, 1, 3]})
    y = net.op("reshape2", {"X": y}, {"shape": [0, 0, d]})
    y = net.op("matmul_v2", {"X": y, "Y": net.param([d, d])})
    return layer_normed(net, net.op("elementwise_add", {"X": x, "Y": y}))


@block(takes="steps", gives="steps")
def layer_normed(net: Net, x: str) -> str:
    """A layer_norm over the last dim."""
    d = net.channels(x)
    return net.op("layer_norm", {"X": x, "Scale": net.param([d]), "Bias": net.param([d])}, {"begin_norm_axis": 2})


@block(takes="steps", gives="steps")
def feed_forward(net: Net, x: str) -> str:
    """The transformer's two layers with a residual connection."""
    d = net.channels(x)
    wide = 2 * d
    y = net.op("matmul_v2", {"X": x, "Y": net.param([d, wide])})
    y = net.op("elementwise_add", {"X": y, "Y": net.param([wide])}, {"axis": -1})
    y = activated(net, y, "gelu", "relu")
    y = net.op("matmul_v2", {"X": y, "Y": net.param([wide, d])})
    return net.op("elementwise_add", {"X": x, "Y": y})


@block(takes="rows", gives="rows")
def fully_connected(net: Net, x: str) -> str:
    """mul, bias, activation; or a softmax at the end."""
    n = net.choose(4, 3, 8, 1)
    y = net.op("mul", {"X": x, "Y": net.param([net.channels(x), n])})
    y = net.op("elementwise_add", {"X": y, "Y": net.param([n])}, {"axis": net.choose(1, -1)}) if net.flag() else y
    return net.op("softmax", {"X": y}) if net.integer(0, 3) == 3 else activated(net, y)


@block(takes="steps", gives="rows")
def text_windows(net: Net, x: str) -> str:
    """Convolutions over steps of time, of each channel the greatest or the mean, and what they found side by side."""
    channels, found = net.channels(x), []
    x = net.op("transpose2", {"X": x}, {"axis": [0, 2, 1]})
    for width in net.choose((1,), (2, 3)):
        y = net.op("unsqueeze2", {"X": x}, {"axes": [2]})
        filters = net.param([net.choose(16, 20, 5), channels, 1, width])
        pads = {"paddings": [0, width // 2], "strides": [1, 1]}
        y = activated(net, biased(net, net.op("conv2d", {"Input": y, "Filter": filters}, pads)), "relu", "")
        y = net.op("squeeze2", {"X": y}, {"axes": [2]})
        found.append(net.op(net.choose("reduce_max", "reduce_mean"), {"X": y}, {"dim": [2], "keep_dim": False}))
    return net.op("concat", {"X": found}, {"axis": 1}) if len(found) > 1 else found[0]
