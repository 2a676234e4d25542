"""Numbers of a few bits."""

from __future__ import annotations

import numpy as np
from oprack.errors import UnimplementedError
from oprack.tensor import numpy_dtype
from oprack.types import VarType

from oprack_onnx.export.expressions import Expr, constant, read, write
from oprack_onnx.export.graph import Call, exported


def greatest(bits: int) -> float:
    """The greatest integer of so many bits."""
    return float((1 << (bits - 1)) - 1)


def along(scale: Expr, rank: int, axis: int) -> Expr:
    """Scales of channels, ready to be multiplied with a tensor of this rank."""
    return scale.reshape(-1, *(1,) * (rank - 1 - axis)) if axis >= 0 else scale.scalar()


def rounded(x: Expr, scale: Expr, bits: int, kind: int) -> Expr:
    """Integers as floats: ties to even, then cut; or cut, then ties away from zero."""
    bound = greatest(bits)
    factor = 1.0 / (scale <= 1e-30).select(scale + 1e-6, scale) * bound
    if kind == 0:
        return (x * factor).op("Round").op("Clip", -bound - 1, bound)
    cut = x.maximum(-scale).minimum(scale) * factor
    away = cut + (cut < 0).select(x.like(-0.5), x.like(0.5))
    return (away < 0).select(away.op("Ceil"), away.op("Floor"))


def scale_of(call: Call, x: Expr, axis: int) -> Expr:
    """The greatest absolute value, of all or of each channel."""
    size = abs(x)
    return size.max().reshape(1) if axis < 0 else size.max(*(i for i in range(call.rank()) if i != axis))


def _known(call: Call) -> Expr:
    """The scale that is an input, of a net that is not trained any more."""
    if not call.attr("is_test"):
        raise UnimplementedError("it is written for training")
    return read(call, "InScale")


@exported(
    "fake_quantize_abs_max",
    "fake_quantize_dequantize_abs_max",
    "fake_channel_wise_quantize_abs_max",
    "fake_channel_wise_quantize_dequantize_abs_max",
    "fake_quantize_moving_average_abs_max",
    "fake_quantize_dequantize_moving_average_abs_max",
    "fake_quantize_range_abs_max",
)
def fake_quantize(call: Call) -> None:
    x, axis = read(call), call.attr("quant_axis") if "channel_wise" in call.type else -1
    known = "moving_average" in call.type or "range" in call.type
    scale = _known(call) if known else scale_of(call, x, axis)
    wide, bits = along(scale, call.rank(), axis), call.attr("bit_length")
    out = rounded(x, wide, bits, call.attr("round_type"))
    write(call, out * wide / greatest(bits) if "dequantize" in call.type else out)
    write(call, scale.op("Identity"), "OutScale")
    for source, target in (("InState", "OutState"), ("InAccum", "OutAccum")):
        if known and call.has(source):
            write(call, read(call, source), target)


@exported("moving_average_abs_max_scale")
def moving_average_abs_max_scale(call: Call) -> None:
    if not call.attr("is_test"):
        raise UnimplementedError("it is written for training")
    write(call, read(call).op("Identity"))


@exported("fake_dequantize_max_abs", "dequantize_abs_max")
def fake_dequantize(call: Call) -> None:
    scale = read(call, "Scale")
    write(call, read(call).cast(scale.dtype) * scale.scalar() / call.attr("max_range"))


@exported("fake_channel_wise_dequantize_max_abs")
def fake_channel_wise_dequantize(call: Call) -> None:
    x, rank, bits = read(call), call.rank(), call.attr("quant_bits")
    several = len(call.op.input("Scales")) > 1
    axis = call.attr("x_num_col_dims") if several else call.attr("quant_axis")
    bound = greatest(bits[0]) * (greatest(bits[1]) if several else 1)
    out = x * along(read(call, "Scales"), rank, axis) / bound
    write(call, out * read(call, "Scales", 1).scalar() if several else out)


def _only_dequantized(call: Call) -> bool:
    """Whether what an op gives is read by dequantize_linear alone, so that it may be integers in ONNX."""
    name = next(iter(call.op.output("Y")), "")
    readers = [op for op in call.graph.block.ops if name in op.input_arg_names()]
    return bool(readers) and all(op.type == "dequantize_linear" for op in readers)


@exported("quantize_linear")
def quantize_linear(call: Call) -> None:
    x, scale, axis, bits = read(call), read(call, "Scale"), call.attr("quant_axis"), call.attr("bit_length")
    for source, target in (("InState", "OutState"), ("InAccum", "OutAccum"), ("Scale", "OutScale")):
        if call.has(source):
            write(call, read(call, source), target)
    if call.attr("only_observer"):
        write(call, x.op("Identity"), "Y")
        return
    if not call.attr("is_test"):
        raise UnimplementedError("it is written for training")
    if bits == 8 and call.attr("round_type") == 0 and _only_dequantized(call):
        step = (scale.reshape(-1) if axis >= 0 else scale.scalar()) / greatest(bits)
        zero = _zeros(call, axis)
        attrs = {"axis": axis} if axis >= 0 else {}
        write(call, x.op("QuantizeLinear", step, zero, dtype=VarType.INT8, **attrs), "Y")
        return
    write(call, rounded(x, along(scale, call.rank(), axis), bits, call.attr("round_type")), "Y")


def _zeros(call: Call, axis: int) -> Expr:
    if axis < 0:
        return constant(call.graph, 0, VarType.INT8)
    channels = call.dims("Scale")[0]
    return constant(call.graph, np.zeros(channels), VarType.INT8)


@exported("dequantize_linear")
def dequantize_linear(call: Call) -> None:
    x, scale, axis, bits = read(call), read(call, "Scale"), call.attr("quant_axis"), call.attr("bit_length")
    for source, target in (("InState", "OutState"), ("InAccum", "OutAccum"), ("Scale", "OutScale")):
        if call.has(source):
            write(call, read(call, source), target)
    held = call.graph.initializers.get(x.name)
    if held is not None and held.dtype != np.int8 and bits == 8 and _are_bytes(held):
        x = constant(call.graph, held, VarType.INT8)  # weights that are stored as floats
    if call.attr("only_observer"):
        write(call, x.cast(scale.dtype), "Y")
    elif x.dtype is VarType.INT8:
        step = (scale.reshape(-1) if axis >= 0 else scale.scalar()) / greatest(bits)
        attrs = {"axis": axis} if axis >= 0 else {}
        write(call, x.op("DequantizeLinear", step, dtype=scale.dtype, **attrs), "Y")
    else:
        write(call, x.cast(scale.dtype) * along(scale, call.rank(), axis) / greatest(bits), "Y")


def _are_bytes(held: np.ndarray) -> bool:
    """Whether all numbers are integers of 8 bits."""
    return bool(held.size) and bool((np.rint(held) == held).all()) and bool((np.abs(held) <= 128).all())


@exported("quantize", "dequantize")
def quantize(call: Call) -> None:
    x = read(call, "Input")
    if call.type == "dequantize":
        scale, shift = call.attr("Scale"), call.attr("Shift")
        write(call, (x.cast(VarType.FP32) - shift) / scale, "Output")
        return
    if call.attr("bfloat16"):
        raise UnimplementedError("it gives 16-bit floats")
    kind = VarType.INT8 if call.attr("is_negative_input") else VarType.UINT8
    limits = np.iinfo(numpy_dtype(kind))
    made = (x * call.attr("Scale") + call.attr("Shift")).op("Round").op("Clip", float(limits.min), float(limits.max))
    write(call, made.cast(kind), "Output")


@exported("dequantize_log")
def dequantize_log(call: Call) -> None:
    """Entries of a table, with the sign of the code."""
    x, table = read(call).cast(VarType.INT64), read(call, "Dict")
    negative = x < 0
    found = table.reshape(-1).gather(negative.select(x + 128, x))
    write(call, negative.select(-found, found))
