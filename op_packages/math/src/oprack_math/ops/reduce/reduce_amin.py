"""reduce_amin and its gradient."""

from __future__ import annotations

from oprack_math.ops.reduce._by_tensor import ExtremumByTensor, ExtremumGrad


class ReduceAmin(ExtremumByTensor, type="reduce_amin"):
    r"""$$Out = \min_{dim} X$$ as reduce_min, but for the gradient."""


class ReduceAminGrad(ExtremumGrad, of=ReduceAmin):
    r"""$$X@GRAD = Out@GRAD \cdot [X = Out] / n$$ in equal shares for all n minima."""
