"""Elements one by one, products, and reductions."""

from __future__ import annotations

import functools

import numpy as np
from oprack.types import VarType

from oprack_onnx.table import form
from oprack_onnx.values import FLOATING, HALF, SIGNED, Dims, Node, Value, dtype_of
from oprack_onnx.writer import Writer, broadcast

Results = list["Value | None"]

_BINARY = {
    "Add": "elementwise_add",
    "Sub": "elementwise_sub",
    "Mul": "elementwise_mul",
    "Div": "elementwise_div",
    "BitwiseAnd": "bitwise_and",
    "BitwiseOr": "bitwise_or",
    "BitwiseXor": "bitwise_xor",
}
_TESTS = {
    "Equal": "equal",
    "Greater": "greater_than",
    "GreaterOrEqual": "greater_equal",
    "Less": "less_than",
    "LessOrEqual": "less_equal",
    "And": "logical_and",
    "Or": "logical_or",
    "Xor": "logical_xor",
}


@form(*_BINARY)
def binary(node: Node, w: Writer) -> Results:
    """elementwise_add and so on, with NumPy's broadcasting; before opset 7 along an axis."""
    if node.attrs.get("broadcast") and "axis" in node.given:
        x = node.input(0)
        return [w.run(_BINARY[node.op], {"X": x, "Y": node.input(1)}, {"axis": int(node.attrs["axis"])}, shape=x.shape)]
    return [w.binary(_BINARY[node.op], node.input(0), node.input(1))]


@form(*_TESTS)
def test(node: Node, w: Writer) -> Results:
    """equal, less_than, logical_and and so on."""
    return [w.binary(_TESTS[node.op], node.input(0), node.input(1), VarType.BOOL)]


@form("Sum", "Mean", "Max", "Min")
def several(node: Node, w: Writer) -> Results:
    """A chain of elementwise_add, elementwise_max or elementwise_min; the mean is scaled."""
    op = {"Max": "elementwise_max", "Min": "elementwise_min"}.get(node.op, "elementwise_add")
    values = [v for v in node.inputs if v is not None]
    found = functools.reduce(lambda x, y: w.binary(op, x, y), values)
    if node.op == "Mean" and len(values) > 1:
        found = w.run("scale", {"X": found}, {"scale": 1 / len(values)}, shape=found.shape)
    if len(values) == 1:
        found = w.run("assign", {"X": found}, shape=found.shape)
    return [found]


@form("Neg")
def negate(node: Node, w: Writer) -> Results:
    """scale by -1."""
    x = node.input()
    return [w.run("scale", {"X": x}, {"scale": -1.0}, shape=x.shape)]


@form("Mod")
def modulo(node: Node, w: Writer) -> Results:
    """elementwise_mod, which has the sign of the divisor; onnx_fmod where the sign is the dividend's."""
    x, y = node.input(0), node.input(1)
    if not node.attrs.get("fmod"):
        return [w.binary("elementwise_mod", x, y)]
    return [w.run("onnx_fmod", {"A": x, "B": y}, out="C", shape=broadcast(x.shape, y.shape))]


@form("Pow")
def power(node: Node, w: Writer) -> Results:
    """elementwise_pow of floats of one dtype, square of a constant 2; onnx_pow for what is mixed or whole."""
    x, y = node.input(0), node.input(1)
    if (
        x.dtype in FLOATING
        and y.constant is not None
        and y.constant.size == 1
        and len(y.constant.shape) <= (x.rank or 0)
    ):
        exponent = float(y.constant.reshape(()))
        if exponent in (2.0, 0.5):
            return [w.run("square" if exponent == 2.0 else "sqrt", {"X": x}, shape=x.shape)]
        return [w.run("pow", {"X": x}, {"factor": exponent}, shape=x.shape)]
    if x.dtype is y.dtype and x.dtype in FLOATING:
        return [w.binary("elementwise_pow", x, y)]
    return [w.run("onnx_pow", {"X": x, "Y": y}, out="Z", shape=broadcast(x.shape, y.shape))]


@form("BitShift")
def shift(node: Node, w: Writer) -> Results:
    """bitwise_left_shift or bitwise_right_shift."""
    left = node.attrs["direction"] == "LEFT"
    return [w.binary(f"bitwise_{'left' if left else 'right'}_shift", node.input(0), node.input(1))]


@form("Relu")
def relu(node: Node, w: Writer) -> Results:
    """relu; of integers the larger of each and 0."""
    x = node.input()
    if x.dtype in FLOATING:
        return [w.run("relu", {"X": x}, shape=x.shape)]
    return [w.binary("elementwise_max", x, w.constant(0, x.dtype))]


@form("PRelu")
def prelu(node: Node, w: Writer) -> Results:
    """prelu with one slope or one for each channel, else elementwise_max, elementwise_min, mul and add."""
    x, slope = node.input(0), node.input(1)
    if node.opset < 7 and slope.shape is not None and len(slope.shape) == 1 and (x.rank or 0) > 2:
        slope = w.reshape(slope, [-1, *([1] * ((x.rank or 0) - 2))])  # slopes of channels, whatever the rank
    size = None if slope.shape is None else int(np.prod(slope.shape))
    channels = x.shape[1] if x.shape is not None and len(x.shape) > 1 else None
    per_channel = slope.shape is not None and x.rank is not None and len(slope.shape) == x.rank - 1
    fluid = x.dtype in (VarType.FP32, VarType.FP64) and size is not None and bool(x.rank)
    if fluid and size == 1:
        return [w.run("prelu", {"X": x, "Alpha": w.reshape(slope, [1])}, {"mode": "all"}, shape=x.shape)]
    if fluid and size and per_channel and slope.shape and x.rank and slope.shape[0] == channels == size and x.rank > 2:
        alpha = w.reshape(slope, [1, size, *([1] * (x.rank - 2))])
        return [w.run("prelu", {"X": x, "Alpha": alpha}, {"mode": "channel"}, shape=x.shape)]
    zero = w.constant(0, x.dtype)
    falling = w.binary("elementwise_mul", slope, w.binary("elementwise_min", x, zero))
    return [w.binary("elementwise_add", w.binary("elementwise_max", x, zero), falling)]


@form("Clip")
def clip(node: Node, w: Writer) -> Results:
    """clip with numbers where they are known and exact, else elementwise_max and elementwise_min."""
    x = node.input()
    bounds: list[Value | float | None] = []
    for name, i in (("min", 1), ("max", 2)):
        value = node.get(i)
        if name in node.given:
            bounds.append(float(node.attrs[name]))
        elif value is not None and value.constant is not None and value.constant.size == 1:
            bounds.append(float(value.constant.reshape(())) if x.dtype in FLOATING else value)
        else:
            bounds.append(value)
    low, high = bounds
    if low is None and high is None:
        return [w.run("assign", {"X": x}, shape=x.shape)]
    if not isinstance(low, Value) and not isinstance(high, Value):
        exact = _clipped(w, x, low, high)
        if exact is not None:
            return [exact]
    for op, bound in (("elementwise_max", low), ("elementwise_min", high)):
        if bound is not None:
            value = bound if isinstance(bound, Value) else w.constant(bound, x.dtype)
            x = w.binary(op, x, value)
    return [x]


def _clipped(w: Writer, x: Value, low: float | None, high: float | None) -> Value | None:
    """clip, or relu6, of floats by numbers; None where it can't say the same."""
    most = float(np.finfo(np.float32).max)
    if low is None or x.dtype not in FLOATING or (high is None and x.dtype is not VarType.FP32):
        return None
    upper = most if high is None else high
    if not np.isfinite([low, upper]).all() or low > upper:
        return None
    if (low, upper) == (0.0, 6.0):
        return w.run("relu6", {"X": x}, {"threshold": 6.0}, shape=x.shape)
    return w.run("clip", {"X": x}, {"min": low, "max": upper}, shape=x.shape)


@form("Cast", "CastLike")
def cast(node: Node, w: Writer) -> Results:
    """cast."""
    x = node.input()
    to = node.input(1).dtype if node.op == "CastLike" else dtype_of(int(node.attrs["to"]), node.where)
    if to is x.dtype:
        return [x]
    if x.constant is not None and x.constant.size <= 4096:
        return [w.cast(x, to)]
    attrs = {"in_dtype": int(x.dtype), "out_dtype": int(to)}
    return [w.run("cast", {"X": x}, attrs, dtype=to, shape=x.shape)]


@form("BitCast")
def bit_cast(node: Node, w: Writer) -> Results:
    """onnx_bit_cast."""
    x, to = node.input(), dtype_of(int(node.attrs["to"]), node.where)
    return [w.run("onnx_bit_cast", {"input": x}, {"to": int(to)}, out="output", dtype=to, shape=x.shape)]


@form("Where")
def where(node: Node, w: Writer) -> Results:
    """where, with all three of one shape."""
    condition, x, y = (node.input(i) for i in range(3))
    shape = broadcast(broadcast(condition.shape, x.shape), y.shape)
    if not (condition.shape == x.shape == y.shape and condition.size_is_known):
        condition, x, y = (_spread(v, others, shape, w) for v, others in _with_others([condition, x, y]))
    return [w.run("where", {"Condition": condition, "X": x, "Y": y}, dtype=x.dtype, shape=shape)]


def _with_others(values: list[Value]) -> list[tuple[Value, list[Value]]]:
    return [(v, [o for o in values if o is not v]) for v in values]


def _spread(value: Value, others: list[Value], shape: Dims | None, w: Writer) -> Value:
    """A value in the shape that it has in common with others."""
    if shape is not None and min(shape, default=0) >= 0:
        if value.shape == shape:
            return value
        wanted = w.constant(list(shape))
        return w.run("onnx_expand", {"input": value, "shape": wanted}, out="output", shape=shape)
    for other in others:
        dims = w.cast(w.run("shape", {"Input": other}, dtype=VarType.INT32), VarType.INT64)
        value = w.run("onnx_expand", {"input": value, "shape": dims}, out="output")
    return value


# Products -------------------------------------------------------------------------------------------------------------
@form("MatMul")
def matmul(node: Node, w: Writer) -> Results:
    """matmul_v2."""
    x, y = node.input(0), node.input(1)
    shape = node.out_shape()
    if shape is None and x.shape is not None and y.shape is not None and min(len(x.shape), len(y.shape)) > 1:
        batch = broadcast(x.shape[:-2], y.shape[:-2])
        shape = None if batch is None else (*batch, x.shape[-2], y.shape[-1])
    return [w.run("matmul_v2", {"X": x, "Y": y}, shape=shape)]


@form("Gemm")
def gemm(node: Node, w: Writer) -> Results:
    """matmul_v2, scale and elementwise_add."""
    a, b, c = node.input(0), node.input(1), node.get(2)
    attrs = {"trans_x": bool(node.attrs["transA"]), "trans_y": bool(node.attrs["transB"])}
    out = w.run("matmul_v2", {"X": a, "Y": b}, attrs, shape=node.out_shape())
    if node.attrs["alpha"] != 1.0:
        out = w.run("scale", {"X": out}, {"scale": node.attrs["alpha"]}, shape=out.shape)
    if c is None:
        return [out]
    if node.attrs["beta"] != 1.0:
        c = w.run("scale", {"X": c}, {"scale": node.attrs["beta"]}, shape=c.shape)
    return [w.binary("elementwise_add", out, c)]


@form("Einsum")
def einsum(node: Node, w: Writer) -> Results:
    """einsum."""
    values = [v for v in node.inputs if v is not None]
    equation = node.attrs["equation"].replace(" ", "")
    return [w.run("einsum", {"Operands": values}, {"equation": equation}, shape=node.out_shape())]


# Reductions -----------------------------------------------------------------------------------------------------------
_REDUCTIONS = {
    "ReduceSum": "sum",
    "ReduceMean": "mean",
    "ReduceMax": "max",
    "ReduceMin": "min",
    "ReduceProd": "prod",
    "ReduceL1": "sum",
    "ReduceL2": "sum",
    "ReduceLogSum": "sum",
    "ReduceSumSquare": "sum",
}


@form(*_REDUCTIONS)
def reduce(node: Node, w: Writer) -> Results:
    """reduce_sum and so on, with abs, square, log or sqrt; onnx_reduce where only a run knows the axes."""
    x = node.input()
    if node.op in ("ReduceL2", "ReduceSumSquare"):
        x = w.binary("elementwise_mul", x, x)
    elif node.op == "ReduceL1":
        x = w.run("abs", {"X": x}, shape=x.shape)
    out = reduced(node, w, x, _REDUCTIONS[node.op])
    if node.op == "ReduceL2":
        whole = out.dtype
        wide = w.cast(out, VarType.FP64) if whole in SIGNED else out
        out = w.cast(w.run("sqrt", {"X": wide}, shape=out.shape), whole)
    elif node.op == "ReduceLogSum":
        out = w.run("log", {"X": out}, shape=out.shape)
    return [out]


def reduced(node: Node, w: Writer, x: Value, function: str) -> Value:
    """A reduction along the axes that a node names."""
    axes, keep = node.ints("axes", 1), bool(node.attrs["keepdims"])
    noop = bool(node.attrs.get("noop_with_empty_axes", 0))
    fluid = function not in ("max", "min") or (x.size_is_known and 0 not in (x.shape or ()))
    if (axes is None and node.has(1)) or not fluid or not x.rank or x.dtype in (VarType.BOOL,):
        given = node.get(1)
        if axes is not None and given is None:
            given = w.constant(axes)
        attrs = {"function": function, "keepdims": keep, "noop_with_empty_axes": noop}
        return w.run("onnx_reduce", {"data": x, "axes": given}, attrs, out="reduced", shape=node.out_shape())
    if not axes and noop:
        return w.run("assign", {"X": x}, shape=x.shape)
    image = x.rank == 4 and keep and sorted(a % 4 for a in axes or ()) == [2, 3]
    if function == "mean" and image and x.dtype in (VarType.FP32, VarType.FP64):
        # the mean of a channel as a pool over all of it, which fusions look for
        pool = {"ksize": [1, 1], "global_pooling": True, "pooling_type": "avg", "data_format": "NCHW"}
        return w.run("pool2d", {"X": x}, pool, shape=node.out_shape())
    attrs = {"dim": axes or [0], "keep_dim": keep, "reduce_all": not axes}
    if function == "mean" and x.dtype not in FLOATING:
        return w.run(
            "onnx_reduce",
            {"data": x, "axes": w.constant(axes or [])},
            {"function": "mean", "keepdims": keep},
            out="reduced",
        )
    return w.run(f"reduce_{function}", {"X": x}, attrs, shape=node.out_shape())


@form("ReduceLogSumExp")
def log_sum_exp(node: Node, w: Writer) -> Results:
    """log(sum(exp(x - max))) + max."""
    x = node.input()
    most = reduced(node, w, x, "max")
    keep = Node(**{f: getattr(node, f) for f in Node.__slots__})
    keep.attrs = node.attrs | {"keepdims": 1}
    keep.types = [None]
    kept = most if node.attrs["keepdims"] else reduced(keep, w, x, "max")
    # infinite maxima would give NaN
    finite = w.run("clip", {"X": kept}, {"min": -3e38, "max": 3e38}) if x.dtype is VarType.FP32 else kept
    if x.dtype is VarType.FP64:
        finite = w.binary(
            "elementwise_min",
            w.binary("elementwise_max", kept, w.constant(-1e308, x.dtype)),
            w.constant(1e308, x.dtype),
        )
    total = reduced(node, w, w.run("exp", {"X": w.binary("elementwise_sub", x, finite)}, shape=x.shape), "sum")
    base = (
        finite
        if node.attrs["keepdims"]
        else w.run("reshape2", {"X": finite, "Shape": _dims(w, total)}, {"shape": [-1]})
    )
    return [w.binary("elementwise_add", w.run("log", {"X": total}, shape=total.shape), base)]


def _dims(w: Writer, value: Value) -> Value:
    return w.run("shape", {"Input": value}, dtype=VarType.INT32)


@form("ArgMax", "ArgMin")
def arg(node: Node, w: Writer) -> Results:
    """arg_max or arg_min; onnx_arg_reduce where of equals the last one is meant."""
    x, axis = node.input(), int(node.attrs["axis"])
    keep, last = bool(node.attrs["keepdims"]), bool(node.attrs.get("select_last_index", 0))
    if last or x.dtype in HALF:
        attrs = {"axis": axis, "keepdims": keep, "largest": node.op == "ArgMax", "select_last_index": last}
        return [
            w.run("onnx_arg_reduce", {"data": x}, attrs, out="reduced", dtype=VarType.INT64, shape=node.out_shape())
        ]
    op = "arg_max" if node.op == "ArgMax" else "arg_min"
    attrs = {"axis": axis, "keepdims": keep, "dtype": int(VarType.INT64)}
    return [w.run(op, {"X": x}, attrs, dtype=VarType.INT64, shape=node.out_shape())]


@form("CumSum", "CumProd")
def cumulate(node: Node, w: Writer) -> Results:
    """cumsum along a known axis; onnx_cumulate for products, and where only a run knows the axis."""
    x, axis = node.input(0), node.input(1).numbers()
    attrs = {"exclusive": bool(node.attrs["exclusive"]), "reverse": bool(node.attrs["reverse"])}
    if axis is not None and node.op == "CumSum":
        return [w.run("cumsum", {"X": x}, attrs | {"axis": axis[0], "flatten": False}, shape=x.shape)]
    more = attrs | {"function": "sum" if node.op == "CumSum" else "prod"}
    return [w.run("onnx_cumulate", {"x": x, "axis": node.input(1)}, more, out="y", shape=x.shape)]


@form("Softmax", "LogSoftmax")
def softmax(node: Node, w: Writer) -> Results:
    """softmax or log_softmax; before opset 13 over all axes from one on, as of a matrix."""
    x, axis = node.input(), int(node.attrs.get("axis", -1 if node.opset >= 13 else 1))
    op = "softmax" if node.op == "Softmax" else "log_softmax"
    last = x.rank is not None and axis in (-1, x.rank - 1)
    if node.opset >= 13 or last:
        return [w.run(op, {"X": x}, {"axis": axis}, shape=x.shape)]
    if x.rank is None and axis < 0:
        raise node.lacking("the rank of its input is not known, by which opsets before 13 make it a matrix")
    flat = w.run("flatten2", {"X": x}, {"axis": axis if x.rank is None else axis % x.rank})
    found = w.run(op, {"X": flat}, {"axis": -1})
    return [w.run("reshape2", {"X": found, "Shape": _dims(w, x)}, {"shape": [-1]}, shape=x.shape)]
