"""Cases of fused_elemwise_add_activation."""

from __future__ import annotations

import itertools

import numpy as np
from oprack.testing import OpCase

from .._data import BINARY, UNARY, draw, f32

X, Y = draw(2, 3, 4), draw(3, 4, seed=1)


def case(binary: str, unary: str, outer: bool) -> OpCase:
    middle = BINARY[binary](X, Y) if outer else UNARY[unary](Y)
    out = UNARY[unary](middle) if outer else BINARY[binary](X, middle)
    attrs = {"functor_list": [unary, binary] if outer else [binary, unary], "axis": 1, "scale": 0.5}
    outputs = {"Out": out.astype(f32), "IntermediateOut": middle.astype(f32)}
    return OpCase(
        "fused_elemwise_add_activation",
        {"X": X, "Y": Y},
        attrs,
        outputs,
        ["X", "Y"],
        name="_".join(attrs["functor_list"]),
    )


CASES = [
    *(case(*functions) for functions in itertools.product(BINARY, UNARY, (True, False))),
    OpCase(
        "fused_elemwise_add_activation",
        {"X": X, "Y": Y},
        {"functor_list": ["gelu", "elementwise_add"]},
        {},
        ["X", "Y"],
        name="gelu",
    ),
    OpCase(
        "fused_elemwise_add_activation",
        {"X": np.zeros((0, 3), f32), "Y": draw(3)},
        {"functor_list": ["relu", "elementwise_add"]},
        {"Out": np.zeros((0, 3), f32)},
        ["X", "Y"],
        name="nothing",
    ),
]
