"""Cases of sigmoid."""

from __future__ import annotations

import numpy as np
from oprack.testing import OpCase

from .._slopes import by_difference

OUT, D, G, A, B = np.random.default_rng(3).standard_normal((5, 5))


def loss(out=OUT, d=D, g=G):
    """The outputs of sigmoid_grad_grad, times their gradients."""
    return (A * (1 - 2 * out) * d * g + B * out * (1 - out) * g).sum()


CASES = [
    OpCase(
        "sigmoid_triple_grad",
        {"Out": OUT, "fwd_grad_out": D, "grad_grad_x": G, "grad_out@GRAD": A, "grad_grad_out@GRAD": B},
        {},
        {
            "Out@GRAD": by_difference(lambda v: loss(out=v), OUT),
            "fwd_grad_out@GRAD": by_difference(lambda v: loss(d=v), D),
            "grad_grad_x@GRAD": by_difference(lambda v: loss(g=v), G),
        },
    )
]
