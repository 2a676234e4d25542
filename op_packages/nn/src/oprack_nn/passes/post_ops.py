"""A convolution, or a product with a weight, takes in what follows it: bias, activations, scales, a residual."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from oprack.ir import Fusions, Graph, Match, NewVar, OpNode, PatternBuilder, VarNode, fusion
from oprack.ir.match import Value
from oprack.ir.pattern import OpPattern
from oprack.kernel import Array

from oprack_nn.ops.post_ops import ACTIVATIONS, CLIPPING, RESIDUAL, encode
from oprack_nn.ops.precision import NAME
from oprack_nn.ops.with_post_ops import WINDOW

CONVOLUTIONS = ("conv2d", "depthwise_conv2d")
TRANSPOSED = ("conv2d_transpose", "depthwise_conv2d_transpose")
PRODUCTS = ("mul", "matmul", "matmul_v2")
VIEWS = ("squeeze2", "unsqueeze2", "reshape2", "flatten_contiguous_range", "transpose2")
"""Ops that move elements, or only name them otherwise: activations may as well be before them."""


def _convolutions(p: PatternBuilder) -> tuple[OpPattern, ...]:
    """Patterns of a convolution, fused or not."""
    return with_extras(p, "x", lambda op: op.attr("data_format", "NCHW") != "NHWC")


def with_extras(p: PatternBuilder, x: Any, where: Callable[..., Any]) -> tuple[OpPattern, ...]:
    """Patterns of a convolution of x with whatever was fused with it, on a condition."""
    return (
        p.op(CONVOLUTIONS, Input=x, Filter=p.param("w"), where=where),
        *(p.op("conv2d_post_ops", Input=x, Filter=p.param("w"), where=where, **more) for more in _extras(p)),
    )


def _transposed(p: PatternBuilder) -> tuple[OpPattern, ...]:
    """Patterns of a transposed convolution, fused or not."""
    known = p.op(TRANSPOSED, Input="x", Filter=p.param("w"), where=_plain_transposed)
    slots: tuple[dict[str, Any], ...] = ({}, {"Bias": p.param("bias")})
    return known, *(p.op("conv2d_transpose_post_ops", Input="x", Filter=p.param("w"), **more) for more in slots)


def _plain_transposed(op: OpNode) -> bool:
    return op.attr("data_format", "NCHW") != "NHWC" and not op.attr("output_size", [])


def _products(p: PatternBuilder) -> tuple[OpPattern, ...]:
    return (
        p.op(PRODUCTS, X="x", Y=p.param("w"), where=plain_product),
        *(p.op("matmul_post_ops", X="x", Y=p.param("w"), **more) for more in _extras(p)),
    )


def _extras(p: PatternBuilder) -> tuple[dict[str, Any], ...]:
    """Slots that a fused op may have; a pattern's slots are exact."""
    bias: dict[str, Any] = {"Bias": p.param("bias")}
    residual: dict[str, Any] = {"Residual": "residual"}
    return {}, bias, residual, bias | residual


def plain_product(op: OpNode) -> bool:
    """Whether a product is that of the last dims of X, swapped or not, with a matrix as it is."""
    flags = ("transpose_Y", "trans_y")
    if any(op.attr(f, False) for f in flags) or op.attr("alpha", 1.0) != 1 or op.attr("head_number", 1) != 1:
        return False
    w, x = op.inputs["Y"][0].shape, op.inputs["X"][0].shape
    return w is not None and len(w) == 2 and x is not None and len(x) > 1


def _found(m: Match, patterns: tuple[OpPattern, ...]) -> OpPattern:
    return next(pattern for pattern in patterns if m.has(pattern))


def _rebuilt(
    m: Match,
    main: OpPattern,
    *,
    bias: Value | None = None,
    post_op: str | None = None,
    residual: VarNode | None = None,
) -> NewVar:
    """The fused op with one thing more."""
    op = m.op_of(main)
    post_ops = [*op.attr("post_ops", []), *([] if post_op is None else [post_op])]
    bias = m["bias"] if bias is None and op.input("Bias") is not None else bias
    residual = m["residual"] if residual is None and op.input("Residual") is not None else residual
    more: dict[str, Any] = {k: v for k, v in (("Bias", bias), ("Residual", residual)) if v is not None}
    if op.type in (*CONVOLUTIONS, "conv2d_post_ops"):
        attrs = {name: m.attr(op, name) for name in WINDOW} | {"post_ops": post_ops}
        return m.op("conv2d_post_ops", Input=m["x"], Filter=m["w"], attrs=attrs, **more)
    if op.type in (*TRANSPOSED, "conv2d_transpose_post_ops"):
        attrs = {name: m.attr(op, name) for name in (*WINDOW, "output_padding")} | {"post_ops": post_ops}
        return m.op("conv2d_transpose_post_ops", Input=m["x"], Filter=m["w"], attrs=attrs, **more)
    return m.op("matmul_post_ops", X=m["x"], Y=m["w"], attrs=product_attrs(op) | {"post_ops": post_ops}, **more)


def product_attrs(op: OpNode) -> dict[str, Any]:
    """How a product, fused or not, takes its X: attributes of matmul_post_ops."""
    rows = op.attr("x_num_col_dims", 1 if op.type == "mul" else -1)
    return {"x_num_col_dims": rows, "trans_x": op.attr("transpose_X", op.attr("trans_x", False))}


def precision_attrs(op: OpNode) -> dict[str, str]:
    """What a convolution or product that goes by the attribute says of its precision; {} where it leaves it open."""
    return {} if op.type in (*CONVOLUTIONS, *PRODUCTS) or op.attr(NAME) is None else {NAME: op.attr(NAME)}


def _outputs(m: Match, op: OpNode, w: Array) -> int:
    """Channels that an op makes."""
    if op.type in (*TRANSPOSED, "conv2d_transpose_post_ops"):
        return int(w.shape[1] * m.attr(op, "groups"))
    return int(w.shape[0 if w.ndim == 4 else 1])


def _bias_row(mains: Callable[..., Any]) -> Callable[..., Any]:
    def row(p: PatternBuilder) -> tuple[Any, Callable[..., Any]]:
        main = mains(p)
        add = _added(p, main)

        def build(m: Match) -> NewVar | None:
            found = _found(m, main)
            bias = _bias(m, m.op_of(found), m.root)
            return None if bias is None else _rebuilt(m, found, bias=bias)

        return add, build

    return row


def _added(p: PatternBuilder, main: tuple[OpPattern, ...]) -> OpPattern:
    return p.op("elementwise_add", X=p.either(*main), Y=p.param("b"), commutative=True)


def _bias(m: Match, op: OpNode, add: OpNode) -> Value | None:
    """What an op adds to the results of a convolution or product, as its bias; None where it can't be that."""
    # A bias is added before the post-ops; behind one it would be another function.
    if op.input("Bias") is not None or op.attr("post_ops", []):
        return None
    b, w = m.value("b"), m.value("w")
    if not _is_row(b, add, _outputs(m, op, w), w.ndim, m):
        return None
    # Primitives take a bias of one dim.
    return m["b"] if b.ndim == 1 else m.new_param(b.reshape(-1), like="b")


def _is_row(b: Array, add: OpNode, outputs: int, rank: int, m: Match) -> bool:
    """Whether an operand has one number per output channel, at the channel's dim."""
    axis = m.attr(add, "axis")
    if b.size != outputs or b.dtype.kind != "f":
        return False
    if rank == 4:
        start = 4 - b.ndim if axis == -1 or b.ndim == 4 else axis
        if not 0 <= start <= 4 - b.ndim:
            return False
        dims = (1,) * start + b.shape
        return len(dims) > 1 and dims[1] == outputs
    x, out = m["x"].shape, add.outputs["Out"][0].shape
    if not b.ndim or b.shape[-1] != outputs or x is None or out is None:
        return False
    return axis == -1 or (axis + b.ndim == len(out) and b.ndim in (1, len(x)))


def _activation_row(mains: Callable[..., Any]) -> Callable[..., Any]:
    def row(p: PatternBuilder) -> tuple[Any, Callable[..., Any]]:
        main = mains(p)
        add = _added(p, main)
        # as layers over sequences are written, with a convolution of images of one row
        view = p.op(VIEWS, X=p.either(*main, add))
        roots = [p.op(op_type, X=p.either(*main, add, view)) for op_type in ACTIVATIONS]

        def build(m: Match) -> NewVar | None:
            names = ACTIVATIONS[m.root.type]
            text = encode(m.root.type, [m.attr(m.root, name) for name in names])
            if text is None or (m.root.type in CLIPPING and not all(np.isfinite(v).all() for v in _parameters(m))):
                return None  # a post-op would hide that the parameters are broken
            found = _found(m, main)
            bias = _bias(m, m.op_of(found), m.op_of(add)) if m.has(add) else None
            if bias is None and m.has(add):
                return None
            out = _rebuilt(m, found, bias=bias, post_op=text)
            return m.op(m.op_of(view).type, X=out, attrs=m.attrs(view)) if m.has(view) else out

        return p.either(*roots), build

    return row


def _parameters(m: Match) -> list[Array]:
    return [m.value(name) for name in ("w", "bias", "b") if m.has(name)]


def _residual_row(mains: Callable[..., Any]) -> Callable[..., Any]:
    def row(p: PatternBuilder) -> tuple[Any, Callable[..., Any]]:
        main = mains(p)
        add = p.op("elementwise_add", X=p.either(*main), Y="r", commutative=True)

        def build(m: Match) -> NewVar | None:
            found = _found(m, main)
            op, r = m.op_of(found), m["r"]
            out = next(iter(op.writes()))
            same = r.shape == out.shape and r.dtype == out.dtype == "float32"
            if op.input("Residual") is not None or r.shape is None or not same or r.persistable or len(r.shape) < 2:
                return None
            return _rebuilt(m, found, residual=r, post_op=RESIDUAL)

        return add, build

    return row


def _rows(mains: Callable[..., Any], kind: str) -> Fusions:
    return fusion(f"{kind}_activation")(_activation_row(mains)) + fusion(f"{kind}_bias")(_bias_row(mains))


# Rows are tried in turn until none fits, so that any order of bias, residual and activation is taken in.
_CONV = _rows(_convolutions, "conv2d") + fusion("conv2d_residual")(_residual_row(_convolutions))
_CONV += _rows(_transposed, "conv2d_transpose")
_MATMUL = _rows(_products, "matmul") + fusion("matmul_residual")(_residual_row(_products))


def fuse_conv2d(graph: Graph) -> int:
    """Convolutions with what follows them."""
    return _CONV(graph)


def fuse_matmul(graph: Graph) -> int:
    """Products with a weight and what follows them."""
    return _MATMUL(graph)
