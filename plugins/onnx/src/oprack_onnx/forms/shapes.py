"""Tensors reshaped, joined, cut and repeated."""

from __future__ import annotations

from typing import Any

import numpy as np
from oprack.types import VarType

from oprack_onnx.table import form
from oprack_onnx.values import Node, Value, dtype_of
from oprack_onnx.writer import Writer

Results = list["Value | None"]
NEAR = 64
"""Ops back to which one looks for what made a value."""

SMALL = 4096
"""Elements of a constant that is worked out when the model is read."""


@form("Identity")
def identity(node: Node, w: Writer) -> Results:
    """Nothing: another name of the value."""
    return [node.input()]


@form("Constant")
def constant(node: Node, w: Writer) -> Results:
    """A parameter."""
    for name in ("value", "sparse_value"):
        if name in node.given:
            return [w.parameter(node.outputs[0], np.asarray(node.attrs[name]))]
    for name, dtype in (
        ("value_float", np.float32),
        ("value_floats", np.float32),
        ("value_int", np.int64),
        ("value_ints", np.int64),
    ):
        if name in node.given:
            return [w.parameter(node.outputs[0], np.asarray(node.attrs[name], dtype))]
    raise node.lacking("it has no number; oprack has no tensors of text")


@form("Shape")
def shape(node: Node, w: Writer) -> Results:
    """shape as int64, cut by start and end; a constant where all of it is known."""
    x = node.input()
    start, end = int(node.attrs.get("start", 0)), node.attrs.get("end") if "end" in node.given else None
    if x.size_is_known and x.shape is not None:
        return [w.parameter(node.outputs[0], np.array(x.shape[start:end], np.int64))]
    out = w.cast(w.run("shape", {"Input": x}, dtype=VarType.INT32), VarType.INT64)
    if start == 0 and end is None:
        return [out]
    wanted = {"data": out, "starts": w.constant([start]), "ends": w.constant([2**31 - 1 if end is None else int(end)])}
    return [w.run("onnx_slice", wanted, out="output", dtype=VarType.INT64)]


@form("Size")
def size(node: Node, w: Writer) -> Results:
    """size."""
    return (
        [w.reshape(w.run("size", {"Input": node.input()}, dtype=VarType.INT64), [])]
        if False
        else [w.run("size", {"Input": node.input()}, dtype=VarType.INT64, shape=())]
    )


@form("Reshape")
def reshape(node: Node, w: Writer) -> Results:
    """reshape2; onnx_reshape where a 0 is meant as a size."""
    x, dims = node.input(), node.ints("shape", 1)
    allow = bool(node.attrs.get("allowzero", 0))
    if dims is not None and not (allow and 0 in dims) and dims:
        return [w.reshape(x, dims)]
    given = node.get(1) or w.constant(dims or [])
    known = node.out_shape()
    if known is None and given.shape and given.shape[0] >= 0:
        known = (-1,) * given.shape[0]
    if allow or dims == []:
        inputs = {"data": x, "shape": given}
        return [w.run("onnx_reshape", inputs, {"allowzero": allow}, out="reshaped", shape=known)]
    return [w.run("reshape2", {"X": x, "Shape": w.cast(given, VarType.INT32)}, {"shape": [-1]}, shape=known)]


@form("Flatten")
def flatten(node: Node, w: Writer) -> Results:
    """flatten2."""
    x, axis = node.input(), int(node.attrs["axis"])
    if axis < 0:
        if x.rank is None:
            raise node.lacking(f"axis is {axis} and the rank of its input is not known")
        axis += x.rank
    if axis == 0:
        return [w.reshape(x, [1, -1])]
    return [w.run("flatten2", {"X": x}, {"axis": axis}, shape=node.out_shape())]


@form("Squeeze", "Unsqueeze")
def squeeze(node: Node, w: Writer) -> Results:
    """squeeze2 or unsqueeze2; axes that only a run knows are a variable."""
    x, axes = node.input(), node.ints("axes", 1)
    if node.op == "Squeeze":
        if axes is None and node.has(1):
            return [_by_variable(w, "squeeze2", x, node.input(1), node)]
        picked = _picked(w, x, axes or [], node)
        if picked is not None:
            return [picked]
        return [w.run("squeeze2", {"X": x}, {"axes": axes or []}, shape=node.out_shape())]
    if axes is None:
        return [
            w.run("unsqueeze2", {"X": x, "AxesTensor": w.cast(node.input(1), VarType.INT32)}, shape=node.out_shape())
        ]
    if x.rank is not None:
        axes = sorted(a + x.rank + len(axes) if a < 0 else a for a in axes)
    if x.constant is not None and x.constant.size <= SMALL:
        return [w.parameter(node.outputs[0], np.expand_dims(x.constant, tuple(axes)))]
    return [w.run("unsqueeze2", {"X": x}, {"axes": axes}, shape=node.out_shape())]


def _picked(w: Writer, x: Value, axes: list[int], node: Node) -> Value | None:
    """A slice of one place of each axis that goes, as one op; None where x is no such slice."""
    made = next((op for op in reversed(w.block.ops[-NEAR:]) if x.name in op.output_arg_names()), None)
    if made is None or made.type != "slice" or not axes or x.rank is None or made.attr("decrease_axis"):
        return None
    gone = sorted(a % x.rank for a in axes)
    spans = dict(zip(made.attrs["axes"], zip(made.attrs["starts"], made.attrs["ends"], strict=True), strict=True))
    if any(a not in spans or spans[a][1] - spans[a][0] != 1 or spans[a][1] == 0 for a in gone):
        return None
    attrs = {n: made.attrs[n] for n in ("axes", "starts", "ends", "infer_flags")} | {"decrease_axis": gone}
    source = Value(made.input("Input")[0], x.dtype, None)
    return w.run("slice", {"Input": source}, attrs, shape=node.out_shape())


def _by_variable(w: Writer, op: str, x: Value, axes: Value, node: Node) -> Value:
    """An op whose attribute `axes` names a variable."""
    from oprack.types import AttrType

    out = w.declare(op, x.dtype, node.out_shape())
    w.emit(op, {"X": x}, {"Out": out}, {"axes": axes.name}, {"axes": AttrType.VAR})
    return out


@form("Transpose")
def transpose(node: Node, w: Writer) -> Results:
    """transpose2."""
    x = node.input()
    order = node.attrs.get("perm")
    if order is None:
        if x.rank is None:
            raise node.lacking("it has no perm, and the rank of its input is not known")
        order = list(range(x.rank))[::-1]
    return [w.transpose(x, order) if order else w.run("assign", {"X": x}, shape=x.shape)]


@form("Concat")
def concat(node: Node, w: Writer) -> Results:
    """concat."""
    values = [v for v in node.inputs if v is not None]
    arrays = [v.constant for v in values if v.constant is not None]
    if len(arrays) == len(values) and sum(a.size for a in arrays) <= SMALL:
        return [w.parameter(node.outputs[0], np.concatenate(arrays, int(node.attrs["axis"])))]
    if len(values) == 1:
        return [w.run("assign", {"X": values[0]}, shape=values[0].shape)]
    return [w.run("concat", {"X": values}, {"axis": int(node.attrs["axis"])}, shape=node.out_shape())]


@form("Split")
def split(node: Node, w: Writer) -> Results:
    """split where sizes are known, else onnx_split."""
    x, axis, count = node.input(), int(node.attrs["axis"]), len(node.outputs)
    sizes = node.ints("split", 1)
    dim = x.shape[axis] if x.shape is not None else -1
    if sizes is None and not node.has(1) and dim >= 0:
        part = -(-dim // count)
        sizes = [part] * (count - 1) + [dim - part * (count - 1)]
    outs = []
    for i in range(count):
        dims = node.out_shape(i)
        if sizes is not None and x.shape is not None and i < len(sizes):
            dims = tuple(sizes[i] if k == axis % len(x.shape) else d for k, d in enumerate(x.shape))
        outs.append(w.declare(node.outputs[i] or "split", x.dtype, dims))
    if sizes is not None and dim > 0 and min(sizes) > 0:
        w.emit("split", {"X": x}, {"Out": outs}, {"axis": axis, "sections": sizes, "num": 0})
    else:
        given = node.get(1) or (w.constant(sizes) if sizes is not None and node.given & {"split"} else None)
        w.emit("onnx_split", {"input": x, "split": given}, {"outputs": outs}, {"axis": axis})
    return list(outs)


@form("Expand")
def expand(node: Node, w: Writer) -> Results:
    """expand_v2 where the shape is known, else onnx_expand."""
    x, dims = node.input(0), node.input(1).numbers()
    if (
        dims is not None
        and x.size_is_known
        and x.shape is not None
        and len(dims) >= len(x.shape)
        and len(dims) <= 6
        and x.shape
    ):
        wanted = np.broadcast_shapes(x.shape, tuple(dims))
        return [w.run("expand_v2", {"X": x}, {"shape": list(wanted)}, shape=tuple(wanted))]
    return [w.run("onnx_expand", {"input": x, "shape": node.input(1)}, out="output", shape=node.out_shape())]


@form("Tile")
def tile(node: Node, w: Writer) -> Results:
    """tile."""
    x, repeats = node.input(0), node.input(1).numbers()
    if repeats is not None:
        return [w.run("tile", {"X": x}, {"repeat_times": repeats}, shape=node.out_shape())]
    given = w.cast(node.input(1), VarType.INT32)
    return [w.run("tile", {"X": x, "RepeatTimes": given}, {"repeat_times": []}, shape=node.out_shape())]


@form("ConstantOfShape")
def constant_of_shape(node: Node, w: Writer) -> Results:
    """fill_constant."""
    value = np.asarray(node.attrs.get("value", np.zeros(1, np.float32)))
    if value.size != 1:
        raise node.lacking(f"its value has {value.size} elements; expected one")
    filled = w.parameter("value", value.reshape(1))
    dims = node.input().numbers()
    attrs = {"dtype": int(filled.dtype), "value": 0.0}
    if dims is not None:
        inputs = {"ValueTensor": filled}
        return [w.run("fill_constant", inputs, attrs | {"shape": dims}, dtype=filled.dtype, shape=tuple(dims))]
    inputs = {"ValueTensor": filled, "ShapeTensor": node.input()}
    return [w.run("fill_constant", inputs, attrs, dtype=filled.dtype, shape=node.out_shape())]


@form("Range")
def range_(node: Node, w: Writer) -> Results:
    """range."""
    values = [w.reshape(node.input(i), [1]) for i in range(3)]
    inputs = dict(zip(("Start", "End", "Step"), values, strict=True))
    return [w.run("range", inputs, shape=node.out_shape())]


@form("EyeLike")
def eye_like(node: Node, w: Writer) -> Results:
    """onnx_eye_like."""
    x = node.input()
    dtype = dtype_of(int(node.attrs["dtype"]), node.where) if "dtype" in node.given else x.dtype
    attrs = {"k": int(node.attrs["k"]), "dtype": int(dtype)}
    return [w.run("onnx_eye_like", {"input": x}, attrs, out="output", dtype=dtype, shape=x.shape)]


@form("NonZero")
def non_zero(node: Node, w: Writer) -> Results:
    """where_index, transposed."""
    x = node.input()
    found = w.run("where_index", {"Condition": x}, dtype=VarType.INT64)
    return [w.run("transpose2", {"X": found}, {"axis": [1, 0]}, shape=node.out_shape())]


@form("Pad")
def pad(node: Node, w: Writer) -> Results:
    """pad with a known number of zeros or others, else onnx_pad."""
    x, pads = node.input(), node.ints("pads", 1)
    mode = node.attrs.get("mode", "constant")
    value = node.get(2)
    number = node.attrs.get("value", 0.0) if value is None else value.constant
    plain = number is not None and np.size(number) == 1 and not node.has(3) and mode == "constant"
    if plain and pads is not None and min(pads, default=0) >= 0 and x.rank and 2 * x.rank == len(pads):
        rank = x.rank
        ordered = [p for i in range(rank) for p in (pads[i], pads[rank + i])]
        attrs = {"paddings": ordered, "pad_value": float(np.asarray(number).reshape(()))}
        return [w.run("pad", {"X": x}, attrs, shape=node.out_shape())]
    if mode in ("reflect", "edge", "wrap") and pads is not None and not node.has(3) and min(pads, default=0) >= 0:
        mirrored = _by_places(node, x, pads, mode, w)
        if mirrored is not None:
            return [mirrored]
    if value is None and "value" in node.given:
        value = w.constant(node.attrs["value"], x.dtype)
    given = node.get(1) or w.constant(pads or [])
    inputs = {"data": x, "pads": given, "constant_value": value, "axes": node.get(3)}
    return [w.run("onnx_pad", inputs, {"mode": mode}, out="output", shape=node.out_shape())]


def _by_places(node: Node, x: Value, pads: list[int], mode: str, w: Writer) -> Value | None:
    """Pads that repeat what is there, as a gather along each axis; None where a size is not known."""
    rank, shape = x.rank or 0, list(x.shape or ())
    axes = [i for i in range(rank) if pads[i] or pads[rank + i]]
    if len(pads) != 2 * rank or not axes or any(shape[i] < 1 for i in axes):
        return None
    for axis in axes:
        widths, size = (pads[axis], pads[rank + axis]), shape[axis]
        names: dict[str, Any] = {"mode": mode}
        places = w.parameter(f"{node.outputs[0]}.places", np.pad(np.arange(size), widths, **names))
        shape[axis] = size + sum(widths)
        x = w.run("gather", {"X": x, "Index": places}, {"axis": axis}, shape=tuple(shape))
    return x


@form("DepthToSpace")
def depth_to_space(node: Node, w: Writer) -> Results:
    """pixel_shuffle for the mode CRD of images; the function body else."""
    x = node.input()
    if node.attrs.get("mode") == "CRD" and x.dtype in (VarType.FP32, VarType.FP64):
        attrs = {"upscale_factor": int(node.attrs["blocksize"]), "data_format": "NCHW"}
        return [w.run("pixel_shuffle", {"X": x}, attrs, shape=node.out_shape())]
    if not x.size_is_known or x.shape is None:
        return []
    n, c, h, wide = x.shape
    b = int(node.attrs["blocksize"])
    if node.attrs.get("mode") == "CRD":
        split, order = [n, c // b**2, b, b, h, wide], [0, 1, 4, 2, 5, 3]
    else:
        split, order = [n, b, b, c // b**2, h, wide], [0, 3, 4, 1, 5, 2]
    return [w.reshape(w.transpose(w.reshape(x, split), order), [n, c // b**2, h * b, wide * b])]
