"""Convolutions, pools, and images resized."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from oprack.types import VarType

from oprack_onnx.table import form
from oprack_onnx.values import FLOATING, Dims, Node, Value
from oprack_onnx.writer import Writer

Results = list["Value | None"]


def window_attrs(node: Node, kernel: Sequence[int], image: Dims | None) -> dict[str, Any] | None:
    """strides, dilations and pads of a window, or None where pads follow from sizes that are not known.

    SAME_UPPER of Fluid's name, SAME, is left to the op.
    """
    rank = len(kernel)
    strides = [int(v) for v in node.attrs.get("strides") or [1] * rank]
    dilations = [int(v) for v in node.attrs.get("dilations") or [1] * rank]
    pads = [int(v) for v in node.attrs.get("pads") or [0] * (2 * rank)]
    auto = node.attrs.get("auto_pad", "NOTSET") or "NOTSET"
    algorithm = "EXPLICIT"
    if auto == "VALID":
        pads = [0] * (2 * rank)
    elif auto != "NOTSET":
        if image is None or min(image, default=-1) < 0:
            if auto != "SAME_UPPER" or set(dilations) != {1}:
                return None
            algorithm = "SAME"
        else:
            ends = [_same(n, k, s, d, auto) for n, k, s, d in zip(image, kernel, strides, dilations, strict=True)]
            pads = [e[0] for e in ends] + [e[1] for e in ends]
    even = all(pads[i] == pads[rank + i] for i in range(rank))
    paddings = pads[:rank] if even else [p for i in range(rank) for p in (pads[i], pads[rank + i])]
    return {
        "strides": strides,
        "dilations": dilations,
        "paddings": [0] * rank if algorithm == "SAME" else paddings,
        "padding_algorithm": algorithm,
    }


def _same(size: int, kernel: int, stride: int, dilation: int, auto: str) -> tuple[int, int]:
    total = max((-(-size // stride) - 1) * stride + dilation * (kernel - 1) + 1 - size, 0)
    less = total // 2
    return (less, total - less) if auto == "SAME_UPPER" else (total - less, less)


def _kernel(node: Node, filters: Value | None) -> list[int] | None:
    given = node.attrs.get("kernel_shape")
    if given:
        return [int(k) for k in given]
    if filters is None or filters.shape is None or min(filters.shape[2:], default=1) < 0:
        return None
    return list(filters.shape[2:])


def _with_bias(out: Value, bias: Value | None, w: Writer) -> Value:
    if bias is None:
        return out
    # as Paddle writes it, and fusions look for it: a row of channels, along axis 1
    return w.run("elementwise_add", {"X": out, "Y": bias}, {"axis": 1}, shape=out.shape)


@form("Conv")
def conv(node: Node, w: Writer) -> Results:
    """conv2d or depthwise_conv2d and elementwise_add, conv3d for volumes, onnx_conv where pads are not known."""
    x, filters = node.input(0), node.input(1)
    kernel = _kernel(node, filters)
    rank = len(kernel) if kernel is not None else 0
    image = None if x.shape is None else x.shape[2:]
    attrs = window_attrs(node, kernel, image) if kernel is not None else None
    group = int(node.attrs.get("group", 1))
    if attrs is None or rank not in (1, 2, 3) or x.dtype not in FLOATING:
        plain: dict[str, Any] = {
            n: node.attrs[n] for n in ("strides", "dilations", "pads", "auto_pad", "group") if n in node.attrs
        }
        return [w.run("onnx_conv", {"X": x, "W": filters, "B": node.get(2)}, plain, out="Y", shape=node.out_shape())]
    if rank == 1:
        return [_with_bias(_conv_of_rows(x, filters, attrs, group, w, node.out_shape()), node.get(2), w)]
    return [_with_bias(_convolved(x, filters, attrs, group, w, node.out_shape()), node.get(2), w)]


def _convolved(x: Value, filters: Value, attrs: dict[str, Any], group: int, w: Writer, shape: Dims | None) -> Value:
    rank = len(attrs["strides"])
    channels = (filters.shape or (0, 0))[1] * group
    depthwise = rank == 2 and group == channels and group > 1
    op = "depthwise_conv2d" if depthwise else "conv2d" if rank == 2 else "conv3d"
    more = {"groups": group, "data_format": "NCHW" if rank == 2 else "NCDHW"}
    return w.run(op, {"Input": x, "Filter": filters}, attrs | more, out="Output", shape=shape)


def _conv_of_rows(x: Value, filters: Value, attrs: dict[str, Any], group: int, w: Writer, shape: Dims | None) -> Value:
    """A convolution of one axis as one of images of one row."""
    pads = attrs["paddings"]
    wide = {
        "strides": [1, *attrs["strides"]],
        "dilations": [1, *attrs["dilations"]],
        "paddings": [0, *pads] if len(pads) == 1 else [0, 0, *pads],
        "padding_algorithm": attrs["padding_algorithm"],
    }
    image = w.run(
        "unsqueeze2", {"X": x}, {"axes": [2]}, shape=None if x.shape is None else (*x.shape[:2], 1, *x.shape[2:])
    )
    if filters.constant is not None:
        flat = w.parameter(f"{filters.name}.rows", filters.constant[:, :, None])
    else:
        dims = None if filters.shape is None else (*filters.shape[:2], 1, *filters.shape[2:])
        flat = w.run("unsqueeze2", {"X": filters}, {"axes": [2]}, shape=dims)
    out = _convolved(image, flat, wide, group, w, None if shape is None else (*shape[:2], 1, *shape[2:]))
    return w.run("squeeze2", {"X": out}, {"axes": [2]}, shape=shape)


@form("ConvTranspose")
def conv_transpose(node: Node, w: Writer) -> Results:
    """conv2d_transpose and elementwise_add for images with even pads, else onnx_conv_transpose."""
    x, filters = node.input(0), node.input(1)
    kernel, group = _kernel(node, filters), int(node.attrs.get("group", 1))
    pads = [int(p) for p in node.attrs.get("pads") or []]
    auto = node.attrs.get("auto_pad", "NOTSET")
    simple = (
        kernel is not None and len(kernel) == 2 and auto in ("NOTSET", "VALID") and "output_shape" not in node.given
    )
    even = not pads or pads[:2] == pads[2:]
    if not simple or not even or x.dtype not in (VarType.FP32, VarType.FP64):
        names = ("strides", "dilations", "pads", "auto_pad", "group", "output_padding", "output_shape")
        attrs = {n: node.attrs[n] for n in names if n in node.attrs}
        return [
            w.run(
                "onnx_conv_transpose", {"X": x, "W": filters, "B": node.get(2)}, attrs, out="Y", shape=node.out_shape()
            )
        ]
    assert kernel is not None
    attrs = window_attrs(node, kernel, None) or {}
    attrs |= {"groups": group, "data_format": "NCHW"}
    extra = [int(p) for p in node.attrs.get("output_padding") or []]
    if any(extra):
        attrs["output_padding"] = extra
    out = w.run("conv2d_transpose", {"Input": x, "Filter": filters}, attrs, out="Output", shape=node.out_shape())
    return [_with_bias(out, node.get(2), w)]


@form("MaxPool", "AveragePool")
def pool(node: Node, w: Writer) -> Results:
    """pool2d for images, else onnx_max_pool or onnx_average_pool."""
    x, kernel = node.input(), [int(k) for k in node.attrs["kernel_shape"]]
    image = None if x.shape is None else x.shape[2:]
    attrs = window_attrs(node, kernel, image)
    maximum, ceil = node.op == "MaxPool", bool(node.attrs.get("ceil_mode", 0))
    one_by_one = attrs is not None and set(attrs["dilations"]) == {1}
    if attrs is None or len(kernel) != 2 or node.wants(1) or ceil or not one_by_one or x.dtype not in FLOATING:
        return _pool_of_any(node, w, x, kernel)
    if attrs["padding_algorithm"] == "SAME" and not maximum and node.attrs.get("count_include_pad"):
        return _pool_of_any(node, w, x, kernel)
    del attrs["dilations"]
    attrs |= {"ksize": kernel, "pooling_type": "max" if maximum else "avg", "data_format": "NCHW"}
    attrs |= {"exclusive": not node.attrs.get("count_include_pad", 0)}
    return [w.run("pool2d", {"X": x}, attrs, shape=node.out_shape())]


def _pool_of_any(node: Node, w: Writer, x: Value, kernel: list[int]) -> Results:
    names = ("strides", "dilations", "pads", "auto_pad", "ceil_mode", "count_include_pad", "storage_order")
    wanted = {"MaxPool": names[:5] + names[6:], "AveragePool": names[:6]}[node.op]
    attrs = {n: node.attrs[n] for n in wanted if n in node.attrs} | {"kernel_shape": kernel}
    op = "onnx_max_pool" if node.op == "MaxPool" else "onnx_average_pool"
    out = w.declare(node.outputs[0] or "pool", x.dtype, node.out_shape(0))
    outs: dict[str, Value] = {"Y": out}
    if node.wants(1):
        outs["Indices"] = w.declare(node.outputs[1], VarType.INT64, node.out_shape(1))
    w.emit(op, {"X": x}, outs, attrs)
    return list(outs.values())


@form("GlobalAveragePool", "GlobalMaxPool")
def global_pool(node: Node, w: Writer) -> Results:
    """pool2d over the whole image, or a reduction over what is no image."""
    x, maximum = node.input(), node.op == "GlobalMaxPool"
    if x.rank == 4:
        attrs = {"ksize": [1, 1], "global_pooling": True, "pooling_type": "max" if maximum else "avg"}
        return [w.run("pool2d", {"X": x}, attrs | {"data_format": "NCHW"}, shape=node.out_shape())]
    if x.rank is None:
        raise node.lacking("the rank of its input is not known")
    attrs = {"dim": list(range(2, x.rank)), "keep_dim": True, "reduce_all": False}
    return [w.run("reduce_max" if maximum else "reduce_mean", {"X": x}, attrs, shape=node.out_shape())]


@form("GlobalLpPool")
def global_lp_pool(node: Node, w: Writer) -> Results:
    """onnx_lp_pool with a window as large as the image."""
    x = node.input()
    if x.shape is None or min(x.shape[2:], default=-1) < 0:
        raise node.lacking("the size of its image is not known")
    attrs = {"kernel_shape": list(x.shape[2:]), "p": int(node.attrs["p"])}
    return [w.run("onnx_lp_pool", {"X": x}, attrs, out="Y", shape=node.out_shape())]


# Resized images -------------------------------------------------------------------------------------------------------
@form("Resize", "Upsample")
def resize(node: Node, w: Writer) -> Results:
    """nearest_interp_v2 or bilinear_interp_v2 where they do the same, else onnx_resize."""
    x = node.input()
    old = node.op == "Upsample" or node.opset < 11
    scales_at = 1 if old else 2
    scales, sizes = node.get(scales_at), None if old else node.get(3)
    if scales is not None and scales.shape == (0,):
        scales = None
    if "scales" in node.given:
        scales = w.constant(node.attrs["scales"], VarType.FP32)
    places = "asymmetric" if old else node.attrs["coordinate_transformation_mode"]
    mode = node.attrs.get("mode", "nearest")
    # before opset 11 nothing is said of rounding; what is told is told of the place itself
    nearest = "floor" if old else node.attrs["nearest_mode"]
    fast = _interpolated(node, w, x, scales, sizes, places, mode, nearest)
    if fast is not None:
        return [fast]
    roi = None if old else node.get(1)
    attrs: dict[str, Any] = {"mode": mode, "coordinate_transformation_mode": places, "nearest_mode": nearest}
    if not old:
        names = (
            "keep_aspect_ratio_policy",
            "cubic_coeff_a",
            "exclude_outside",
            "extrapolation_value",
            "antialias",
            "axes",
        )
        attrs |= {n: node.attrs[n] for n in names if n in node.attrs}
    attrs["mode"] = {"bilinear": "linear", "trilinear": "linear"}.get(mode, mode)
    inputs = {"X": x, "roi": roi, "scales": scales, "sizes": sizes}
    return [w.run("onnx_resize", inputs, attrs, out="Y", shape=node.out_shape())]


def _interpolated(
    node: Node, w: Writer, x: Value, scales: Value | None, sizes: Value | None, places: str, mode: str, nearest: str
) -> Value | None:
    """The op of Fluid that samples at the same places; None where there is none."""
    special = any(node.attrs.get(n) for n in ("exclude_outside", "antialias")) or "axes" in node.given
    policy = node.attrs.get("keep_aspect_ratio_policy", "stretch") != "stretch"
    if x.rank != 4 or x.dtype is not VarType.FP32 or special or policy:
        return None
    factors = None if scales is None or scales.constant is None else [float(s) for s in scales.constant.reshape(-1)]
    wanted = None if sizes is None else sizes.numbers()
    if factors is not None and (len(factors) != 4 or factors[:2] != [1.0, 1.0]):
        return None
    shape = x.shape or (-1,) * 4
    if wanted is not None and (len(wanted) != 4 or shape[1] != wanted[1]):
        return None
    if (factors is None) == (wanted is None):
        return None
    size = _new_size(factors, wanted, shape)
    method = _method(mode, places, nearest)
    if size is None or method is None:
        return None
    op, attrs = method
    return w.run(op, {"X": x}, {"data_layout": "NCHW"} | size | attrs, shape=node.out_shape())


def _new_size(factors: list[float] | None, wanted: list[int] | None, shape: Dims) -> dict[str, Any] | None:
    """The size as Fluid's ops take it, where it is a whole multiple; else sizes are rounded in another way."""
    if factors is not None:
        whole = all(f == int(f) for f in factors[2:])
        return {"scale": factors[2:], "out_h": -1, "out_w": -1} if whole else None
    assert wanted is not None
    if min(shape[2:]) < 0 or any(n % o for n, o in zip(wanted[2:], shape[2:], strict=True)):
        return None
    return {"out_h": wanted[2], "out_w": wanted[3], "scale": []}


def _method(mode: str, places: str, nearest: str) -> tuple[str, dict[str, Any]] | None:
    """The op of Fluid that finds elements in the same way, and its attributes."""
    half = places in ("half_pixel", "pytorch_half_pixel")
    # by a whole factor, half pixels take the pixel that lies over the new one, as asymmetric ones do
    if mode == "nearest" and ((places, nearest) == ("asymmetric", "floor") or (half and nearest.startswith("round"))):
        return "nearest_interp_v2", {"interp_method": "nearest", "align_corners": False}
    corners = {"asymmetric": (False, 1), "align_corners": (True, 1)}.get(places, (False, 0) if half else None)
    if mode in ("linear", "bilinear") and corners is not None:
        attrs = {"interp_method": "bilinear", "align_corners": corners[0], "align_mode": corners[1]}
        return "bilinear_interp_v2", attrs
    return None


@form("GridSample")
def grid_sample(node: Node, w: Writer) -> Results:
    """grid_sampler for images with bilinear or nearest places, else onnx_grid_sample."""
    x, grid = node.input(0), node.input(1)
    mode = {"bilinear": "linear", "bicubic": "cubic"}.get(node.attrs["mode"], node.attrs["mode"])
    corners, padding = bool(node.attrs["align_corners"]), node.attrs["padding_mode"]
    if x.rank == 4 and mode == "linear" and padding != "reflection" and x.dtype in (VarType.FP32, VarType.FP64):
        attrs = {"mode": "bilinear", "padding_mode": padding, "align_corners": corners}
        return [w.run("grid_sampler", {"X": x, "Grid": grid}, attrs, out="Output", shape=node.out_shape())]
    attrs = {"mode": mode, "padding_mode": padding, "align_corners": corners}
    return [w.run("onnx_grid_sample", {"X": x, "grid": grid}, attrs, out="Y", shape=node.out_shape())]
