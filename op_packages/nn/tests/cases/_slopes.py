"""Gradients of functions, without a formula for them."""

from __future__ import annotations

import numpy as np


def by_difference(function, x, step=1e-6):
    """Gradient of a number by an array, by central differences."""
    grad = np.zeros_like(x)
    for i in np.ndindex(x.shape):
        moved = [x.copy(), x.copy()]
        moved[0][i] += step
        moved[1][i] -= step
        grad[i] = (function(moved[0]) - function(moved[1])) / (2 * step)
    return grad


def by_basis(function, shape):
    """Gradient of a linear function from arrays of `shape` to numbers."""
    grad = np.zeros(shape)
    for i in np.ndindex(*shape):
        unit = np.zeros(shape)
        unit[i] = 1
        grad[i] = function(unit)
    return grad
