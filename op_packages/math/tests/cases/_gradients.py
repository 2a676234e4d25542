"""Values for second and third gradients, which no recorded case reaches.

Third gradients are compared with their formula, and, as the gradients of the second ones, with central differences.
"""

from __future__ import annotations

import numpy as np


def draw(*shape, seed=0):
    """float32 between 0.5 and 1.5."""
    return np.random.default_rng([7, seed]).uniform(0.5, 1.5, shape).astype(np.float32)


X, Y, DOUT, DDX, DDY = draw(2, 3), draw(3), draw(2, 3, seed=1), draw(2, 3, seed=2), draw(3, seed=1)
"""Inputs, the gradient of Out, and what the gradients of the inputs are multiplied by in the second pass."""
A, B, C = draw(2, 3, seed=3), draw(3, seed=2), draw(2, 3, seed=4)
A2 = draw(2, 3, seed=5)
"""Gradients of the second gradient's outputs."""
