"""Elements one by one, products and reductions."""

from __future__ import annotations

from typing import Any

import numpy as np
from oprack.errors import UnimplementedError
from oprack.tensor import numpy_dtype
from oprack.types import VarType

from oprack_onnx.export.graph import Call, exported
from oprack_onnx.values import ELEM_TYPES, FLOATING

_UNARY = {
    "abs": "Abs",
    "acos": "Acos",
    "acosh": "Acosh",
    "asin": "Asin",
    "asinh": "Asinh",
    "atan": "Atan",
    "atanh": "Atanh",
    "ceil": "Ceil",
    "cos": "Cos",
    "cosh": "Cosh",
    "erf": "Erf",
    "exp": "Exp",
    "floor": "Floor",
    "log": "Log",
    "logical_not": "Not",
    "bitwise_not": "BitwiseNot",
    "reciprocal": "Reciprocal",
    "relu": "Relu",
    "sigmoid": "Sigmoid",
    "sign": "Sign",
    "sin": "Sin",
    "sinh": "Sinh",
    "softsign": "Softsign",
    "sqrt": "Sqrt",
    "tan": "Tan",
    "tanh": "Tanh",
    "assign": "Identity",
    "share_data": "Identity",
    "memcpy": "Identity",
    "mish": "Mish",
}


_OF_FLOATS = {"acos", "acosh", "asin", "asinh", "atan", "atanh", "cos", "cosh", "erf", "exp", "log", "sigmoid", "sin"}
_OF_FLOATS |= {"sinh", "sqrt", "tan", "tanh", "reciprocal"}
"""What makes floats of integers."""


@exported(*_UNARY)
def unary(call: Call) -> None:
    if call.type in ("bitwise_not",) and call.dtype() is VarType.BOOL:
        call.set(call.node("Not", call.input()))
        return
    x = call.input()
    if call.type == "abs" and call.name("X") in call.graph.pairs:  # of a complex number
        call.set(call.node("ReduceL2", x, call.graph.ints([-1]), keepdims=0))
        return
    if call.type in _OF_FLOATS and call.dtype() not in FLOATING:
        x = call.graph.cast(x, VarType.FP32)
    if call.type == "logical_not" and call.dtype() is not VarType.BOOL:
        x = call.graph.cast(x, VarType.BOOL)
    call.set(call.node(_UNARY[call.type], x))


_PARAMETRIC: dict[str, tuple[str, dict[str, str]]] = {
    "leaky_relu": ("LeakyRelu", {"alpha": "alpha"}),
    "elu": ("Elu", {"alpha": "alpha"}),
    "celu": ("Celu", {"alpha": "alpha"}),
    "selu": ("Selu", {"alpha": "alpha", "gamma": "scale"}),
    "hard_sigmoid": ("HardSigmoid", {"alpha": "slope", "beta": "offset"}),
    "softmax": ("Softmax", {"axis": "axis"}),
    "log_softmax": ("LogSoftmax", {"axis": "axis"}),
    "thresholded_relu": ("ThresholdedRelu", {"alpha": "threshold"}),
}


@exported(*_PARAMETRIC)
def parametric(call: Call) -> None:
    op, names = _PARAMETRIC[call.type]
    call.set(call.node(op, call.input(), **{onnx: call.attr(fluid) for onnx, fluid in names.items()}))


_BINARY = {
    "elementwise_add": "Add",
    "elementwise_sub": "Sub",
    "elementwise_mul": "Mul",
    "elementwise_div": "Div",
    "elementwise_pow": "Pow",
    "elementwise_max": "Max",
    "elementwise_min": "Min",
    "elementwise_mod": "Mod",
    "equal": "Equal",
    "less_than": "Less",
    "less_equal": "LessOrEqual",
    "greater_than": "Greater",
    "greater_equal": "GreaterOrEqual",
    "logical_and": "And",
    "logical_or": "Or",
    "logical_xor": "Xor",
    "bitwise_and": "BitwiseAnd",
    "bitwise_or": "BitwiseOr",
    "bitwise_xor": "BitwiseXor",
    "not_equal": "Equal",
    "elementwise_floordiv": "Div",
    "grad_add": "Add",
}
_BOOL = {"bitwise_and": "And", "bitwise_or": "Or", "bitwise_xor": "Xor", "elementwise_mul": "And"}
_BOOL |= {"elementwise_add": "Or", "elementwise_max": "Or", "elementwise_min": "And"}
_ORDER = ("less_than", "less_equal", "greater_than", "greater_equal")


def _of_one_dtype(call: Call, x: str, y: str) -> tuple[str, str]:
    """Both values in the dtype that the op of ONNX takes: booleans, numbers where they are ordered, or that of X."""
    graph, kinds = call.graph, [call.dtype("X"), call.dtype("Y")]
    if call.type.startswith("logical_"):
        wanted = VarType.BOOL
    elif call.type in _ORDER and kinds[0] is VarType.BOOL:
        wanted = VarType.INT32
    else:
        wanted = kinds[0]
    x, y = (v if k is wanted else graph.cast(v, wanted) for v, k in zip((x, y), kinds, strict=True))
    return x, y


@exported(*_BINARY)
def binary(call: Call) -> None:
    x, y = _of_one_dtype(call, call.input("X"), broadcast(call))
    op = _BINARY[call.type]
    if call.dtype() is VarType.BOOL:
        op = _BOOL.get(call.type, op)
    if call.type == "elementwise_floordiv":
        floor_division(call, x, y)
        return
    if call.type == "elementwise_mod" and call.dtype() in FLOATING:
        whole = call.node("Floor", call.node("Div", x, y))
        call.set(call.node("Sub", x, call.node("Mul", whole, y)))
        return
    out = call.node(op, x, y)
    call.set(call.node("Not", out) if call.type == "not_equal" else out)


def floor_division(call: Call, x: str, y: str) -> None:
    """Paddle 2.6's floor division of integers, which rounds down."""
    if call.dtype() in FLOATING:
        call.set(call.node("Floor", call.node("Div", x, y)))
        return
    rest = call.node("Mod", x, y)  # of the sign of the divisor, so that what is left divides
    call.set(call.node("Div", call.node("Sub", x, rest), y))


def broadcast(call: Call, slot: str = "Y", like: str = "X") -> str:
    """Y with axes of size 1 behind, where `axis` says that its axes are not the last ones of X."""
    y, axis = call.input(slot), call.attr("axis")
    if axis is None or axis == -1:
        return y
    behind = call.rank(like) - axis - call.rank(slot)
    if behind <= 0:
        return y
    ends = [call.rank(slot) + i for i in range(behind)]
    return call.node("Unsqueeze", y, call.graph.ints(ends))


def number(call: Call, value: float, slot: str = "X") -> str:
    """A constant of the dtype of an input."""
    return call.graph.constant(value, numpy_dtype(call.dtype(slot)))


@exported("scale")
def scale(call: Call) -> None:
    if call.has("ScaleTensor"):
        scale_by_tensor(call)
        return
    x, factor, bias = call.input(), call.attr("scale"), call.attr("bias")
    after = call.attr("bias_after_scale")
    whole = call.dtype() not in FLOATING
    factor, bias = (int(factor), int(bias)) if whole else (factor, bias)  # as Paddle takes them for integers
    if bias and not after:
        x = call.node("Add", x, number(call, bias))
    if factor != 1.0:
        x = call.node("Mul", x, number(call, factor))
    if bias and after:
        x = call.node("Add", x, number(call, bias))
    call.set(call.node("Identity", x) if x == call.input() else x)


def scale_by_tensor(call: Call) -> None:
    """scale whose factor is a tensor."""
    x, bias = call.input(), call.attr("bias")
    factor = call.node("Reshape", call.graph.cast(call.input("ScaleTensor"), call.dtype()), call.graph.constant([]))
    if bias and not call.attr("bias_after_scale"):
        x = call.node("Add", x, number(call, bias))
    x = call.node("Mul", x, factor)
    call.set(call.node("Add", x, number(call, bias)) if bias and call.attr("bias_after_scale") else x)


@exported("cast")
def cast(call: Call) -> None:
    to = VarType(call.attr("out_dtype"))
    if to not in ELEM_TYPES:
        raise UnimplementedError(f"it casts to {to.name}")
    call.set(call.graph.cast(call.input(), to), dtype=to)


@exported("relu6", "clip", "brelu")
def clip(call: Call) -> None:
    bounds: list[str] = []
    for slot, name, default in (("Min", "min", None), ("Max", "max", None)):
        if call.type == "relu6":
            bounds.append(number(call, 0.0 if name == "min" else call.attr("threshold")))
        elif call.type == "brelu":
            bounds.append(number(call, call.attr("t_min" if name == "min" else "t_max")))
        elif call.has(slot):
            bounds.append(call.node("Reshape", call.input(slot), call.graph.constant([], np.int64)))
        else:
            bounds.append(number(call, call.attr(name) if call.attr(name) is not None else default or 0))
    call.set(call.node("Clip", call.input(), *bounds))


@exported("hard_swish", "swish", "silu", "rsqrt", "square", "log1p", "expm1", "log2", "log10", "gelu", "softplus")
def composed(call: Call) -> None:
    x = call.input()
    if call.type in ("swish", "silu"):
        beta = call.attr("beta") if call.type == "swish" else 1.0
        inner = x if beta in (None, 1.0) else call.node("Mul", x, number(call, beta))
        out = call.node("Mul", x, call.node("Sigmoid", inner))
    elif call.type == "hard_swish":
        shift, limit, factor = call.attr("offset"), call.attr("threshold"), call.attr("scale")
        inner = call.node("Clip", call.node("Add", x, number(call, shift)), number(call, 0.0), number(call, limit))
        out = call.node("Div", call.node("Mul", x, inner), number(call, factor))
    elif call.type == "gelu":
        out = call.node("Gelu", x, approximate="tanh" if call.attr("approximate") else "none")
    elif call.type == "softplus":
        beta = call.attr("beta")
        inner = x if beta == 1.0 else call.node("Mul", x, number(call, beta))
        out = call.node("Softplus", inner)
        out = out if beta == 1.0 else call.node("Div", out, number(call, beta))
    else:
        one = number(call, 1.0)
        steps: dict[str, Any] = {
            "rsqrt": lambda: call.node("Reciprocal", call.node("Sqrt", x)),
            "square": lambda: call.node("Mul", x, x),
            "log1p": lambda: call.node("Log", call.node("Add", x, one)),
            "expm1": lambda: call.node("Sub", call.node("Exp", x), one),
            "log2": lambda: call.node("Mul", call.node("Log", x), number(call, 1 / np.log(2))),
            "log10": lambda: call.node("Mul", call.node("Log", x), number(call, 1 / np.log(10))),
        }
        out = steps[call.type]()
    call.set(out)


@exported("pow")
def power(call: Call) -> None:
    if call.has("FactorTensor"):
        factor = call.node("Reshape", call.input("FactorTensor"), call.graph.constant([]))
    else:
        factor = number(call, call.attr("factor"))
    call.set(call.node("Pow", call.input(), factor))


@exported("prelu")
def prelu(call: Call) -> None:
    alpha, rank = call.input("Alpha"), call.rank()
    if call.attr("mode") == "all":
        alpha = call.node("Reshape", alpha, call.graph.ints([1]))
    elif call.attr("mode") == "channel":
        alpha = call.node("Reshape", alpha, call.graph.ints([-1] + [1] * (rank - 2)))
    call.set(call.node("PRelu", call.input(), alpha))


# Products -------------------------------------------------------------------------------------------------------------
@exported("matmul_v2", "matmul", "bmm")
def matmul(call: Call) -> None:
    out_scale = call.attr("alpha") if call.type == "matmul" else 1.0
    flags = ("trans_x", "trans_y") if call.type == "matmul_v2" else ("transpose_X", "transpose_Y")
    values = []
    for slot, flag in zip("XY", flags, strict=True):
        value = call.input(slot)
        if call.type != "bmm" and call.attr(flag) and call.rank(slot) > 1:
            order = list(range(call.rank(slot)))
            order[-1], order[-2] = order[-2], order[-1]
            value = call.node("Transpose", value, perm=order)
        values.append(value)
    # A vector becomes a matrix: ONNX Runtime fuses the transposition of the other factor, and is wrong beside a vector
    flat = [s for s in "XY" if call.type != "bmm" and call.rank(s) == 1]
    if len(flat) == 1:
        at, axis = "XY".index(flat[0]), 0 if flat[0] == "X" else -1
        values[at] = call.node("Unsqueeze", values[at], call.graph.ints([axis]))
    out = call.node("MatMul", *values)
    if len(flat) == 1:
        out = call.node("Squeeze", out, call.graph.ints([-2 if flat[0] == "X" else -1]))
    call.set(out if out_scale in (None, 1.0) else call.node("Mul", out, number(call, out_scale)))


@exported("mul")
def mul(call: Call) -> None:
    """Both factors as matrices; the result has the leading dims of X and the trailing ones of Y."""
    x_dims, y_dims = call.attr("x_num_col_dims"), call.attr("y_num_col_dims")
    x = call.input("X") if call.rank("X") == 2 else call.node("Flatten", call.input("X"), axis=x_dims)
    y = call.input("Y") if call.rank("Y") == 2 else call.node("Flatten", call.input("Y"), axis=y_dims)
    out = call.node("MatMul", x, y)
    if call.rank("X") != 2 or call.rank("Y") != 2:
        front = call.node("Shape", call.input("X"), start=0, end=x_dims)
        back = call.node("Shape", call.input("Y"), start=y_dims)
        out = call.node("Reshape", out, call.node("Concat", front, back, axis=0))
    call.set(out)


@exported("einsum")
def einsum(call: Call) -> None:
    call.set(call.node("Einsum", *call.inputs("Operands"), equation=call.attr("equation")))


@exported("sum", "mean")
def total(call: Call) -> None:
    if call.type == "mean":
        call.set(call.node("ReduceMean", call.input(), keepdims=0))
    elif call.dtype() in FLOATING:
        call.set(call.node("Sum", *call.inputs()))
    else:
        total, *rest = call.inputs()
        for value in rest:
            total = call.node("Add", total, value)
        call.set(total)


# Reductions -----------------------------------------------------------------------------------------------------------
_REDUCED = {
    "reduce_sum": "ReduceSum",
    "reduce_mean": "ReduceMean",
    "reduce_max": "ReduceMax",
    "reduce_min": "ReduceMin",
    "reduce_prod": "ReduceProd",
    "reduce_all": "ReduceMin",
    "reduce_any": "ReduceMax",
    "logsumexp": "ReduceLogSumExp",
    "frobenius_norm": "ReduceL2",
}


@exported(*_REDUCED)
def reduce(call: Call) -> None:
    dims = call.attr("axis") if call.type == "logsumexp" else call.attr("dim")
    if isinstance(dims, str):
        raise UnimplementedError("its axes are a variable")
    keep = call.attr("keepdim" if call.type == "logsumexp" else "keep_dim")
    x, logical = call.input(), call.type in ("reduce_all", "reduce_any")
    if logical:
        x = x if call.dtype() is VarType.BOOL else call.graph.cast(x, VarType.BOOL)
        x = call.graph.cast(x, VarType.INT32)
    elif call.type in ("reduce_sum", "reduce_prod") and call.declared() not in (None, call.dtype()):
        x = call.graph.cast(x, call.declared() or call.dtype())  # sums of integers are of 64 bits
    whole = call.attr("reduce_all") or not dims
    axes = [] if whole else [call.graph.ints(dims)]
    out = call.node(_REDUCED[call.type], x, *axes, keepdims=int(bool(keep)))
    call.set(call.graph.cast(out, VarType.BOOL) if logical else out)


@exported("arg_max", "arg_min")
def arg(call: Call) -> None:
    x, axis = call.input(), call.attr("axis")
    if isinstance(axis, str):
        raise UnimplementedError("its axis is a variable")
    if call.attr("flatten"):
        x, axis = call.node("Reshape", x, call.graph.ints([-1])), 0
    keep = int(call.attr("keepdims") and not call.attr("flatten"))
    out = call.node("ArgMax" if call.type == "arg_max" else "ArgMin", x, axis=axis, keepdims=keep)
    if call.attr("dtype") == VarType.INT32:
        out = call.graph.cast(out, VarType.INT32)
    call.set(out)


@exported("cumsum")
def cumsum(call: Call) -> None:
    x, axis = call.input(), call.attr("axis")
    if call.attr("flatten"):
        x, axis = call.node("Reshape", x, call.graph.ints([-1])), 0
    if isinstance(axis, str):
        raise UnimplementedError("its axis is a variable")
    flags = {"exclusive": int(call.attr("exclusive")), "reverse": int(call.attr("reverse"))}
    call.set(call.node("CumSum", x, call.graph.constant(axis), **flags))


@exported("top_k_v2")
def top_k(call: Call) -> None:
    k = (
        call.node("Reshape", call.input("K"), call.graph.ints([1]))
        if call.has("K")
        else call.graph.ints([call.attr("k")])
    )
    if call.has("K") and call.dtype("K") is not VarType.INT64:
        k = call.graph.cast(k, VarType.INT64)
    attrs = {"axis": call.attr("axis"), "largest": int(call.attr("largest")), "sorted": 1}
    values, places = call.graph.node("TopK", [call.input(), k], 2, **attrs)
    call.set(values)
    call.set(places, "Indices")


@exported("where")
def where(call: Call) -> None:
    call.set(call.node("Where", call.input("Condition"), call.input("X"), call.input("Y")))
