"""Cases of frobenius_norm."""

from __future__ import annotations

from oprack.testing import OpCase

from .._data import f32, y

CASES = [
    OpCase(
        "frobenius_norm_grad",
        {"X": y * 0, "Out": f32(0), "Out@GRAD": f32(1)},
        {"reduce_all": True},
        {"X@GRAD": y * 0},
        name="of_zero",
    ),
]
