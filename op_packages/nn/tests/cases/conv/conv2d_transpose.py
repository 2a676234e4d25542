"""Cases of conv2d_transpose."""

from __future__ import annotations

import numpy as np

from .._slopes import by_basis
from ._family import convolve, second_gradient

RNG = np.random.default_rng(2)
X, W = RNG.standard_normal((2, 2, 2, 3)), RNG.standard_normal((2, 2, 3, 2))


def transposed(x, w):
    """The adjoint of the convolution whose input has the size of the output."""
    return by_basis(lambda e: (x * convolve(e, w)).sum(), (2, 4, 3, 4))


CASES = [second_gradient("conv2d_transpose_grad_grad", transposed, X, W, "grad_x@GRAD")]
