"""Convolution one output at a time, and the second gradient of what is linear in Input and in Filter."""

from __future__ import annotations

import numpy as np
from oprack.testing import OpCase

from .._slopes import by_basis

ATTRS = {"strides": [2, 2], "paddings": [1, 1], "groups": 2}


def convolve(x, w, stride=2, pad=1, groups=2):
    """Direct convolution."""
    x = np.pad(x, ((0, 0), (0, 0), (pad, pad), (pad, pad)))
    n, _, h, width = x.shape
    k, per_group, kh, kw = w.shape
    y = np.zeros((n, k, (h - kh) // stride + 1, (width - kw) // stride + 1))
    for b, o, i, j in np.ndindex(*y.shape):
        first = o // (k // groups) * per_group
        top, left = i * stride, j * stride
        y[b, o, i, j] = (x[b, first : first + per_group, top : top + kh, left : left + kw] * w[o]).sum()
    return y


def second_gradient(op, forward, x, w, second):
    """The case of `op`, the gradient of the gradient of `forward`; second: its slot of the gradient of Input."""
    rng = np.random.default_rng(1)
    y = forward(x, w)
    dy, ddx, ddw = (rng.standard_normal(a.shape) for a in (y, x, w))
    return OpCase(
        op,
        {"Input": x, "Filter": w, "grad_out": dy, second: ddx, "grad_filter@GRAD": ddw},
        ATTRS,
        {
            "Input@GRAD": by_basis(lambda e: (dy * forward(e, ddw)).sum(), x.shape),
            "Filter@GRAD": by_basis(lambda e: (dy * forward(ddx, e)).sum(), w.shape),
            "grad_out@GRAD": forward(ddx, w) + forward(x, ddw),
        },
    )
