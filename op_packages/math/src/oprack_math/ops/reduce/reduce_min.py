"""reduce_min and its gradient."""

from __future__ import annotations

from oprack_math.ops._reduce import ReduceExtremum, ReduceGradWithOut


class ReduceMin(ReduceExtremum, type="reduce_min"):
    r"""$$Out = \min_{dim} X$$"""


class ReduceMinGrad(ReduceGradWithOut, of=ReduceMin):
    r"""$$X@GRAD = Out@GRAD \cdot [X = Out]$$ every one of several minima gets all of it."""
