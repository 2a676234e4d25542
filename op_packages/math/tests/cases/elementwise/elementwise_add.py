"""Cases of elementwise_add."""

from __future__ import annotations

from oprack.tensor import LoDTensor
from oprack.testing import OpCase

from .._data import empty, f32, lod, x, y
from .._gradients import DDX, DDY, DOUT, Y

CASES = [
    OpCase("elementwise_add", {"X": x, "Y": y}, {"axis": 1}, {"Out": x + y[:, None]}, ["X", "Y"], name="axis"),
    OpCase("elementwise_add", {"X": f32(2), "Y": f32(3)}, outputs={"Out": f32(5)}, grads=["X", "Y"], name="0d"),
    OpCase("elementwise_add", {"X": empty, "Y": y}, outputs={"Out": empty}, grads=["X", "Y"], name="empty"),
    OpCase(
        "elementwise_add",
        {"X": LoDTensor(x[:, 0], lod), "Y": f32(1)},
        outputs={"Out": LoDTensor(x[:, 0] + 1, lod)},
        name="lod",
    ),
    OpCase("elementwise_add_grad_grad", {"Y": Y, "DOut": DOUT, "DDX": DDX, "DDY": DDY}, grads=["DDX", "DDY"]),
    OpCase(
        "elementwise_add_triple_grad",
        {"DDX": DDX, "DDY": DDY, "D_DDOut": DOUT},
        outputs={"D_DDX": DOUT, "D_DDY": DOUT.sum(0)},
    ),
]
