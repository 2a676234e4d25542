"""Elements one by one, written out where ONNX has no op for them: activations, comparisons and losses."""

from __future__ import annotations

import math
from collections.abc import Callable

from oprack.errors import UnimplementedError
from oprack.types import VarType

from oprack_onnx.export.expressions import Expr, full, maybe, read, write
from oprack_onnx.export.graph import Call, exported

Function = Callable[[Call, Expr], Expr]


def _softshrink(call: Call, x: Expr) -> Expr:
    return x.op("Shrink", lambd=call.attr("lambda"), bias=call.attr("lambda"))


def _logit(call: Call, x: Expr) -> Expr:
    eps = call.attr("eps")
    y = x.op("Clip", eps, 1 - eps) if eps >= 1e-6 else x
    return (y / (1.0 - y)).log()


def _soft_relu(call: Call, x: Expr) -> Expr:
    limit = call.attr("threshold")
    return (x.op("Clip", -limit, limit).exp() + 1.0).log()


def _trunc(call: Call, x: Expr) -> Expr:
    return (x < 0).select(x.op("Ceil"), x.op("Floor")) if x.is_float() else x.op("Identity")


def _round(call: Call, x: Expr) -> Expr:
    """Halves go away from 0; ONNX's Round has them go to even numbers."""
    if not x.is_float():
        return x.op("Identity")
    size = abs(x)
    floor = size.op("Floor")  # adding a half first would round the number below a half up
    return x.op("Sign") * (size - floor >= 0.5).select(floor + 1.0, floor)


_UNARY: dict[str, Function] = {
    "stanh": lambda c, x: (x * c.attr("scale_a")).op("Tanh") * c.attr("scale_b"),
    "tanh_shrink": lambda c, x: x - x.op("Tanh"),
    "logsigmoid": lambda c, x: -((-x).op("Softplus")),
    "softshrink": _softshrink,
    "hard_shrink": lambda c, x: ((x > c.attr("threshold")) | (x < -c.attr("threshold"))).select(x, 0),
    "soft_relu": _soft_relu,
    "logit": _logit,
    "round": _round,
    "trunc": _trunc,
    "memcpy_d2h": lambda c, x: x.op("Identity"),
    "memcpy_h2d": lambda c, x: x.op("Identity"),
    "lod_array_copy": lambda c, x: x.op("Identity"),
    "fill_zeros_like2": lambda c, x: full(x.shape(), 0, x.dtype),
    "fill_any": lambda c, x: full(x.shape(), c.attr("value"), x.dtype),
    "squared_l2_norm": lambda c, x: (x * x).sum().reshape(1),
    "l1_norm": lambda c, x: abs(x).sum(),
    "isnan": lambda c, x: _is(x, "IsNaN").any().reshape(1),
    "isinf": lambda c, x: _is(x, "IsInf").any().reshape(1),
    "isfinite": lambda c, x: (~(_is(x, "IsNaN") | _is(x, "IsInf"))).all().reshape(1),
    "isfinite_v2": lambda c, x: ~(_is(x, "IsNaN") | _is(x, "IsInf")),
    "isnan_v2": lambda c, x: _is(x, "IsNaN"),
    "isinf_v2": lambda c, x: _is(x, "IsInf"),
    "is_empty": lambda c, x: x.op("Size", dtype=VarType.INT64).equal(0),
}


def _is(x: Expr, op: str) -> Expr:
    """Whether elements are NaN or infinite; integers are neither."""
    if x.is_float():
        return x.op(op, dtype=VarType.BOOL)
    return full(x.shape(), False, VarType.BOOL)


@exported(*_UNARY)
def unary(call: Call) -> None:
    write(call, _UNARY[call.type](call, read(call)))


@exported("transfer_dtype")
def transfer_dtype(call: Call) -> None:
    write(call, read(call).cast(VarType(call.attr("out_dtype"))))


@exported("maxout")
def maxout(call: Call) -> None:
    """The largest one of each group of channels that lie together."""
    x, axis, groups = read(call), call.attr("axis") % call.rank(), call.attr("groups")
    front, back = x.shape(0, axis), x.shape(axis + 1)
    grouped = x.reshape(front, -1, groups, back) if axis else x.reshape(-1, groups, back)
    write(call, grouped.max(axis + 1))


# Two values -----------------------------------------------------------------------------------------------------------
def _nan(x: Expr, y: Expr, pick: str) -> Expr:
    """The larger or smaller one, where NaN is no number."""
    if not x.is_float():
        return x.op(pick, y)
    both = x.op(pick, y)
    return _is(x, "IsNaN").select(y, _is(y, "IsNaN").select(x, both))


def _aligned(call: Call) -> tuple[Expr, Expr]:
    from oprack_onnx.export.tensors.numbers import broadcast

    x = read(call)
    if call.op.attr("axis") is None:
        return x, read(call, "Y")
    return x, Expr(call.graph, broadcast(call), call.graph.dtype(call.name("Y")))


_BINARY: dict[str, Callable[[Expr, Expr], Expr]] = {
    "elementwise_fmax": lambda x, y: _nan(x, y, "Max"),
    "elementwise_fmin": lambda x, y: _nan(x, y, "Min"),
    "elementwise_heaviside": lambda x, y: x.equal(0).select(y, (x > 0).select(full(x.shape(), 1, x.dtype), 0)),
    "minus": lambda x, y: x - y,
}


@exported(*_BINARY)
def binary(call: Call) -> None:
    write(call, _BINARY[call.type](*_aligned(call)))


@exported("dot")
def dot(call: Call) -> None:
    x, y = read(call), read(call, "Y")
    write(call, (x * y).sum(-1))


@exported("mv")
def mv(call: Call) -> None:
    write(call, read(call) @ read(call, "Vec"))


@exported("atan2")
def atan2(call: Call) -> None:
    """The angle of a point, by atan of the quotient and the quarter that it lies in."""
    y, x = read(call, "X1"), read(call, "X2")
    if not y.is_float():
        raise UnimplementedError("it takes angles of integers")
    zero = x.equal(0)
    angle = (y / zero.select(1, x)).op("Atan")
    turned = (x < 0).select((y < 0).select(angle - math.pi, angle + math.pi), angle)
    upright = y.op("Sign") * (math.pi / 2)
    write(call, zero.select(upright, turned))


@exported("isclose", "allclose")
def isclose(call: Call) -> None:
    if call.has("Rtol") or call.has("Atol"):
        raise UnimplementedError("its tolerances are tensors")
    x, y = read(call, "Input"), read(call, "Other")
    rtol, atol = float(call.attr("rtol")), float(call.attr("atol"))
    near = x.equal(y)
    if x.is_float():
        near = near | (abs(x - y) <= abs(y) * rtol + atol)
        if call.attr("equal_nan"):
            near = near | (_is(x, "IsNaN") & _is(y, "IsNaN"))
    else:
        gap = abs(x - y).cast(VarType.FP64)
        near = near | (gap <= abs(y).cast(VarType.FP64) * rtol + atol)
    write(call, near.all() if call.type == "allclose" else near)


@exported("equal_all")
def equal_all(call: Call) -> None:
    if call.dims() != call.dims("Y") or min(call.dims(), default=0) < 0:
        raise UnimplementedError("whether both shapes are equal is not known")
    write(call, read(call).equal(read(call, "Y")).all())


@exported("lerp")
def lerp(call: Call) -> None:
    x, y = read(call), read(call, "Y")
    write(call, x + (y - x) * read(call, "Weight"))


@exported("cross")
def cross(call: Call) -> None:
    x, y, axis = read(call), read(call, "Y"), call.attr("dim")
    if axis == 9:
        axis = call.dims().index(3)
    turned = [v.gather([k, 0, 1] if k == 2 else [1, 2, 0], axis) for v, k in ((x, 1), (y, 2), (x, 2), (y, 1))]
    write(call, turned[0] * turned[1] - turned[2] * turned[3])


@exported("kron")
def kron(call: Call) -> None:
    x, y, rank = read(call), read(call, "Y"), max(call.rank(), call.rank("Y"))
    x, y = (v.reshape(*[1] * (rank - call.rank(s)), v.shape()) for v, s in ((x, "X"), (y, "Y")))
    wide = x.unsqueeze(*range(1, 2 * rank, 2)) * y.unsqueeze(*range(0, 2 * rank, 2))
    write(call, wide.op("Reshape", x.shape() * y.shape()))


@exported("addmm")
def addmm(call: Call) -> None:
    product = read(call) @ read(call, "Y")
    write(call, read(call, "Input") * call.attr("Beta") + product * call.attr("Alpha"))


@exported("multi_dot")
def multi_dot(call: Call) -> None:
    out = read(call)
    for i in range(1, len(call.op.input("X"))):
        out = out @ read(call, "X", i)
    write(call, out)


@exported("bilinear_tensor_product")
def bilinear_tensor_product(call: Call) -> None:
    """x W[k] y of each row and k: y with W[k] for all k, then with x."""
    x, y, weight, bias = read(call), read(call, "Y"), read(call, "Weight"), maybe(call, "Bias")
    wy = y.unsqueeze(0) @ weight.transpose(0, 2, 1)  # [k, rows, left]
    out = (wy * x.unsqueeze(0)).sum(2).transpose(1, 0)
    write(call, out if bias is None else out + bias)


# Norms ----------------------------------------------------------------------------------------------------------------
@exported("norm")
def norm(call: Call) -> None:
    x, axis = read(call), call.attr("axis")
    length = ((x * x).sum(axis, keep=True) + call.attr("epsilon")).sqrt()
    write(call, x / length)
    write(call, length, "Norm")


@exported("clip_by_norm", "dgc_clip_by_norm")
def clip_by_norm(call: Call) -> None:
    if call.type != "clip_by_norm":
        raise UnimplementedError("it is of training")
    x, most = read(call), call.attr("max_norm")
    length = (x * x).sum().sqrt()
    write(call, x * (length > most).select(most / length, 1.0))


@exported("dist")
def dist(call: Call) -> None:
    write(call, _length(read(call) - read(call, "Y"), call.attr("p"), None, False))


def _length(x: Expr, order: float, axes: list[int] | None, keep: bool) -> Expr:
    size = abs(x)
    if order == 0:
        return (~size.equal(0)).cast(x.dtype).reduce("Sum", axes, keep)
    if math.isinf(order):
        return size.reduce("Max" if order > 0 else "Min", axes, keep)
    return (size**order).reduce("Sum", axes, keep) ** (1 / order)


@exported("p_norm")
def p_norm(call: Call) -> None:
    axes = None if call.attr("asvector") else [call.attr("axis")]
    x, keep, order = read(call), bool(call.attr("keepdim")), call.attr("porder")
    if order in (1.0, 2.0):
        write(call, x.reduce("L2" if order == 2.0 else "L1", axes, keep))
    else:
        write(call, _length(x, order, axes, keep))


@exported("renorm")
def renorm(call: Call) -> None:
    x, axis, most = read(call), call.attr("axis") % call.rank(), call.attr("max_norm")
    others = [i for i in range(call.rank()) if i != axis]
    length = _length(x, call.attr("p"), others, True)
    write(call, x * (length > most).select(most / (length + 1e-7), 1.0))


@exported("cos_sim")
def cos_sim(call: Call) -> None:
    x, y = (read(call, s).op("Flatten", axis=1) for s in "XY")
    sizes = [v.reduce("L2", [1], True) for v in (x, y)]
    write(call, (x * y).sum(1, keep=True) / sizes[0] / sizes[1])
    write(call, sizes[0], "XNorm")
    write(call, sizes[1], "YNorm")


@exported("data_norm")
def data_norm(call: Call) -> None:
    x, size = read(call), read(call, "BatchSize")
    mean = read(call, "BatchSum") / size
    scale = (size / read(call, "BatchSquareSum")).sqrt()
    if call.attr("slot_dim") > 0 or call.attr("enable_scale_and_shift"):
        raise UnimplementedError("it leaves out slots, or has a factor and a shift")
    write(call, (x - mean) * scale, "Y")
    write(call, mean, "Means")
    write(call, scale, "Scales")


@exported("affine_channel")
def affine_channel(call: Call) -> None:
    dims = [-1] + [1] * (call.rank() - 2)
    scale, bias = (read(call, slot).reshape(*dims) for slot in ("Scale", "Bias"))
    write(call, read(call) * scale + bias)


@exported("npu_identity")
def npu_identity(call: Call) -> None:
    write(call, read(call, "x").op("Identity"), "out")


@exported("rrelu")
def rrelu(call: Call) -> None:
    """The mean slope, as nets that are not trained any more have it."""
    if not call.attr("is_test"):
        raise UnimplementedError("it is written for training")
    write(call, read(call).op("LeakyRelu", alpha=(call.attr("lower") + call.attr("upper")) / 2))
