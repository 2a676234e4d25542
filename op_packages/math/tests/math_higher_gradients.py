"""Records of second and third gradients that no case file reaches.

Third gradients are compared with their formula, and, as the gradients of the second ones, with central differences.
"""

from __future__ import annotations

import numpy as np
from oprack.testing import OpCase

_RNG = np.random.default_rng(7)


def _draw(*shape):
    return _RNG.uniform(0.5, 1.5, shape).astype(np.float32)


x, y, d, e, f = _draw(2, 3), _draw(3), _draw(2, 3), _draw(2, 3), _draw(3)
a, b, c = _draw(2, 3), _draw(3), _draw(2, 3)
a2 = _draw(2, 3)
sin, cos = np.sin(x), np.cos(x)
out = np.tanh(x)
p = 2.5  # exponent of pow
m, n, md, me, mf = _draw(4, 2, 3), _draw(3, 5), _draw(4, 2, 5), _draw(4, 2, 3), _draw(3, 5)
ma, mb, mc = _draw(4, 2, 3), _draw(3, 5), _draw(4, 2, 5)


def _t(array):
    return array.swapaxes(-1, -2)


_SINE = {"X": x, "grad_out": d, "grad_x@GRAD": e}
_THIRD = {"X": x, "grad_out_forward": d, "grad_x_grad_forward": e, "grad_x@GRAD": a, "grad_out_grad@GRAD": a2}

CASES = [
    OpCase("elementwise_add_grad_grad", {"Y": y, "DOut": d, "DDX": e, "DDY": f}, grads=["DDX", "DDY"]),
    OpCase(
        "elementwise_add_triple_grad",
        {"DDX": e, "DDY": f, "D_DDOut": d},
        outputs={"D_DDX": d, "D_DDY": d.sum(0)},
    ),
    OpCase(
        "elementwise_sub_grad_grad",
        {"Y": _draw(2, 4, 3), "DOut": _draw(2, 4, 3), "DDX": f, "DDY": np.full((2, 4, 3), 2, np.float32)},
        outputs={"DDOut": np.broadcast_to(f - 2, (2, 4, 3))},
        name="x_of_lower_rank",
    ),
    OpCase(
        "elementwise_mul_grad_grad",
        {"X": x, "Y": y, "DOut": d, "DDX": e, "DDY": f},
        outputs={"DDOut": e * y + x * f, "X@GRAD": d * f, "Y@GRAD": (d * e).sum(0)},
        grads=["X", "Y", "DOut", "DDX", "DDY"],
    ),
    OpCase(
        "elementwise_mul_triple_grad",
        {"X": x, "Y": y, "DOut": d, "DDX": e, "DDY": f, "D_DX": a, "D_DY": b, "D_DDOut": c},
        outputs={
            "D_X": c * f,
            "D_Y": (c * e).sum(0),
            "D_DOut": a * f + b * e,
            "D_DDX": b * d + c * y,
            "D_DDY": (a * d + c * x).sum(0),
        },
    ),
    OpCase("sin_grad", {"X": x, "Out@GRAD": d}, grads=["X", "Out@GRAD"]),
    OpCase(
        "sin_double_grad",
        _SINE,
        outputs={"X@GRAD": -d * e * sin, "grad_out@GRAD": e * cos},
        grads=["X", "grad_out", "grad_x@GRAD"],
    ),
    OpCase(
        "sin_triple_grad",
        _THIRD,
        outputs={
            "X@GRAD": -a * e * d * cos - a2 * e * sin,
            "grad_out_forward@GRAD": -a * e * sin,
            "grad_x_grad_forward@GRAD": a2 * cos - a * d * sin,
        },
    ),
    OpCase("cos_grad", {"X": x, "Out@GRAD": d}, grads=["X", "Out@GRAD"]),
    OpCase(
        "cos_double_grad",
        _SINE,
        outputs={"X@GRAD": -d * e * cos, "grad_out@GRAD": -e * sin},
        grads=["X", "grad_out", "grad_x@GRAD"],
    ),
    OpCase(
        "cos_triple_grad",
        _THIRD,
        outputs={
            "X@GRAD": a * e * d * sin - a2 * e * cos,
            "grad_out_forward@GRAD": -a * e * cos,
            "grad_x_grad_forward@GRAD": -a2 * sin - a * d * cos,
        },
    ),
    OpCase("tanh_grad_grad", {"Out": out, "grad_out": d, "grad_x@GRAD": e}, grads=["Out", "grad_out", "grad_x@GRAD"]),
    OpCase(
        "tanh_triple_grad",
        {"Out": out, "grad_out_forward": d, "grad_x_grad_forward": e, "grad_out_new@GRAD": a, "grad_out_grad@GRAD": a2},
        outputs={
            "Out@GRAD": -2 * a * d * e - 2 * a2 * e * out,
            "grad_out_forward@GRAD": -2 * a * e * out,
            "grad_x_grad_forward@GRAD": a2 * (1 - out**2) - 2 * a * d * out,
        },
    ),
    OpCase(
        "tanh_triple_grad",
        {"Out": out, "grad_out_forward": d, "grad_x_grad_forward": e, "grad_out_grad@GRAD": a2},
        outputs={"Out@GRAD": -2 * a2 * e * out, "grad_x_grad_forward@GRAD": a2 * (1 - out**2)},
        name="one_gradient",
    ),
    OpCase("pow_grad", {"X": x, "Out@GRAD": d}, {"factor": p}, grads=["X", "Out@GRAD"]),
    OpCase(
        "pow_double_grad",
        {"X": x, "grad_out": d, "grad_x@GRAD": e},
        {"factor": p},
        outputs={"X@GRAD": e * d * p * (p - 1) * x ** (p - 2), "grad_out@GRAD": e * p * x ** (p - 1)},
        grads=["X", "grad_out", "grad_x@GRAD"],
    ),
    OpCase(
        "pow_double_grad",
        {"X": np.zeros(2, np.float32), "grad_out": d[0, :2], "grad_x@GRAD": e[0, :2]},
        {"factor": 1.0},
        outputs={"X@GRAD": np.zeros(2, np.float32), "grad_out@GRAD": e[0, :2]},
        name="linear_at_0",
    ),
    OpCase(
        "pow_triple_grad",
        {"X": x, "grad_out": d, "grad_grad_x": e, "grad_x@GRAD": a, "grad_grad_out@GRAD": a2},
        {"factor": p},
        outputs={
            "X@GRAD": a * e * d * p * (p - 1) * (p - 2) * x ** (p - 3) + a2 * e * p * (p - 1) * x ** (p - 2),
            "grad_out@GRAD": a * e * p * (p - 1) * x ** (p - 2),
            "grad_grad_x@GRAD": a * d * p * (p - 1) * x ** (p - 2) + a2 * p * x ** (p - 1),
        },
    ),
    OpCase(
        "matmul_v2_grad_grad",
        {"X": m, "Y": n, "grad_out": md, "grad_x@GRAD": me, "grad_y@GRAD": mf},
        outputs={"grad_out@GRAD": me @ n + m @ mf, "X@GRAD": md @ mf.T, "Y@GRAD": (_t(me) @ md).sum(0)},
        grads=["X", "Y", "grad_out", "grad_x@GRAD", "grad_y@GRAD"],
    ),
    OpCase(
        "matmul_v2_grad_grad",
        {"X": _draw(3, 2), "Y": _draw(4, 5, 3), "grad_out": _draw(4, 2, 5), "grad_x@GRAD": _draw(3, 2)},
        {"trans_x": True, "trans_y": True},
        grads=["X", "Y", "grad_out", "grad_x@GRAD"],
        name="transposed",
    ),
    OpCase(
        "matmul_v2_triple_grad",
        {
            "X": m,
            "Y": n,
            "grad_out": md,
            "grad_grad_x": me,
            "grad_grad_y": mf,
            "grad_x@GRAD": ma,
            "grad_y@GRAD": mb,
            "grad_grad_out@GRAD": mc,
        },
        outputs={
            "X@GRAD": mc @ mf.T,
            "Y@GRAD": (_t(me) @ mc).sum(0),
            "grad_out@GRAD": ma @ mf + me @ mb,
            "grad_grad_x@GRAD": mc @ n.T + md @ mb.T,
            "grad_grad_y@GRAD": (_t(m) @ mc + _t(ma) @ md).sum(0),
        },
    ),
]
