"""reduce_amax and its gradient."""

from __future__ import annotations

from oprack_math.ops.reduce._by_tensor import ExtremumByTensor, ExtremumGrad


class ReduceAmax(ExtremumByTensor, type="reduce_amax"):
    r"""$$Out = \max_{dim} X$$ as reduce_max, but for the gradient."""


class ReduceAmaxGrad(ExtremumGrad, of=ReduceAmax):
    r"""$$X@GRAD = Out@GRAD \cdot [X = Out] / n$$ in equal shares for all n maxima."""
