"""Elements taken by their places."""

from __future__ import annotations

from typing import Any

import numpy as np
from oprack.types import VarType

from oprack_onnx.table import form
from oprack_onnx.values import Node, Value
from oprack_onnx.writer import Writer

Results = list["Value | None"]
END = 2**31 - 1


@form("Slice")
def slice_(node: Node, w: Writer) -> Results:
    """slice where all is known and goes forwards one by one, else onnx_slice."""
    x = node.input()
    starts, ends = node.ints("starts", 1), node.ints("ends", 2)
    axes, steps = node.ints("axes", 3), node.ints("steps", 4)
    if starts is not None and ends is not None and not (axes is None and node.has(3)):
        axes = list(range(len(starts))) if axes is None else axes
        if (
            x.constant is not None
            and x.constant.size <= END
            and x.constant.ndim == 1
            and (steps is not None or not node.has(4))
        ):
            step = (steps or [1])[0]
            return [w.parameter(node.outputs[0], x.constant[starts[0] : ends[0] : step].copy())]
        forwards = not node.has(4) if steps is None else set(steps) == {1}
        front = x.rank is not None or min(axes) >= 0
        if forwards and front and axes:
            axes = [a + x.rank if a < 0 and x.rank is not None else a for a in axes]
            if x.shape is not None:  # what takes all of an axis cuts nothing
                cuts = [i for i, a in enumerate(axes) if x.shape[a] < 0 or not _whole(starts[i], ends[i], x.shape[a])]
                axes, starts, ends = ([v[i] for i in cuts] for v in (axes, starts, ends))
                if not cuts:
                    return [x]
            limit = [max(min(v, END), -END) for v in starts], [max(min(v, END), -END) for v in ends]
            attrs = {"axes": axes, "starts": limit[0], "ends": limit[1], "infer_flags": [1] * len(axes)}
            return [w.run("slice", {"Input": x}, attrs, shape=node.out_shape())]
    given = {
        "data": x,
        "starts": node.get(1) or w.constant(starts or []),
        "ends": node.get(2) or w.constant(ends or []),
        "axes": node.get(3) or (w.constant(axes) if axes is not None else None),
        "steps": node.get(4),
    }
    return [w.run("onnx_slice", given, out="output", shape=node.out_shape())]


def _whole(start: int, end: int, size: int) -> bool:
    """Whether a slice takes all of an axis."""
    return (start == 0 or start <= -size) and end >= size


@form("Gather")
def gather(node: Node, w: Writer) -> Results:
    """slice for one constant place, gather for a constant row of them, else onnx_gather."""
    x, indices, axis = node.input(0), node.input(1), int(node.attrs["axis"])
    known = indices.constant
    if known is not None and x.constant is not None and x.constant.size <= 4096:
        return [w.parameter(node.outputs[0], np.take(x.constant, known, axis))]
    front = axis + x.rank if axis < 0 and x.rank is not None else axis
    if known is not None and known.ndim == 0 and front >= 0 and (x.rank or 0) > 1:
        place = int(known)
        attrs: dict[str, Any] = {"axes": [front], "starts": [place], "ends": [place + 1 if place != -1 else END]}
        attrs |= {"decrease_axis": [front], "infer_flags": [1]}
        return [w.run("slice", {"Input": x}, attrs, shape=node.out_shape())]
    if known is not None and known.ndim == 1 and known.size and known.min() >= 0 and front >= 0:
        return [w.run("gather", {"X": x, "Index": indices}, {"axis": front}, shape=node.out_shape())]
    return [w.run("onnx_gather", {"data": x, "indices": indices}, {"axis": axis}, out="output", shape=node.out_shape())]


@form("GatherND")
def gather_nd(node: Node, w: Writer) -> Results:
    """gather_nd; onnx_gather_nd with axes of a batch, or places that may be negative."""
    x, indices, batch = node.input(0), node.input(1), int(node.attrs.get("batch_dims", 0))
    if not batch and indices.constant is not None and (indices.constant >= 0).all():
        return [w.run("gather_nd", {"X": x, "Index": indices}, shape=node.out_shape())]
    inputs = {"data": x, "indices": indices}
    return [w.run("onnx_gather_nd", inputs, {"batch_dims": batch}, out="output", shape=node.out_shape())]


@form("TopK")
def top_k(node: Node, w: Writer) -> Results:
    """onnx_top_k, with k as an input in all opsets."""
    x = node.input()
    k = node.get(1) or w.constant([int(node.attrs["k"])])
    values = w.declare(node.outputs[0] or "values", x.dtype, node.out_shape(0))
    places = w.declare((node.outputs[1:] or [""])[0] or "indices", VarType.INT64, node.out_shape(1))
    attrs: dict[str, Any] = {n: node.attrs[n] for n in ("axis", "largest", "sorted") if n in node.attrs}
    w.emit("onnx_top_k", {"X": x, "K": k}, {"Values": values, "Indices": places}, attrs)
    return [values, places]


@form("Compress")
def compress(node: Node, w: Writer) -> Results:
    """onnx_compress."""
    flat = "axis" not in node.given
    attrs = {"flat": flat, "axis": 0 if flat else int(node.attrs["axis"])}
    inputs = {"input": node.input(0), "condition": node.input(1)}
    return [w.run("onnx_compress", inputs, attrs, out="output", shape=node.out_shape())]


@form("Unique")
def unique(node: Node, w: Writer) -> Results:
    """onnx_unique."""
    x, flat = node.input(), "axis" not in node.given
    attrs = {"flat": flat, "axis": 0 if flat else int(node.attrs["axis"]), "sorted": bool(node.attrs["sorted"])}
    outs = [w.declare(node.outputs[0] or "unique", x.dtype, node.out_shape(0))]
    outs += [w.declare(name or "unique", VarType.INT64, (-1,)) for name in node.outputs[1:]]
    slots = dict(zip(("Y", "indices", "inverse_indices", "counts"), outs, strict=False))
    w.emit("onnx_unique", {"X": x}, slots, attrs)
    return list(outs)
