"""Cases of stright_throuth_estimator_grad."""

from __future__ import annotations

from oprack.testing import OpCase

from .._data import IMAGE

CASES = [
    OpCase("stright_throuth_estimator_grad", {"Out@GRAD": IMAGE}, {}, {"X@GRAD": IMAGE}, ["Out@GRAD"]),
]
