"""Kernels of logsigmoid and its gradient."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, kernel

from oprack_nn.kernels._smooth import sigmoid as logistic
from oprack_nn.kernels._smooth import softplus as log1pexp
from oprack_nn.kernels.activation._family import BOTH, NUMBERS


@kernel("logsigmoid", place=BOTH, dtypes=NUMBERS)
def logsigmoid(X: Array, *, xp: ArrayModule) -> Array:
    return -log1pexp(-X, xp)


@kernel("logsigmoid_grad", place=BOTH, dtypes=NUMBERS)
def logsigmoid_grad(X: Array, Out_grad: Array, *, xp: ArrayModule) -> Array:
    return Out_grad * xp.conj(logistic(-X, xp))
