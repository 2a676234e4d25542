"""reduce_max and its gradient."""

from __future__ import annotations

from oprack_math.ops._reduce import ReduceExtremum, ReduceGradWithOut


class ReduceMax(ReduceExtremum, type="reduce_max"):
    r"""$$Out = \max_{dim} X$$"""


class ReduceMaxGrad(ReduceGradWithOut, of=ReduceMax):
    r"""$$X@GRAD = Out@GRAD \cdot [X = Out]$$ every one of several maxima gets all of it."""
