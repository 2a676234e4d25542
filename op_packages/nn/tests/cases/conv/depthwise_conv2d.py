"""Cases of depthwise_conv2d."""

from __future__ import annotations

import numpy as np

from ._family import convolve, second_gradient

RNG = np.random.default_rng(0)
X, W = RNG.standard_normal((2, 2, 4, 5)), RNG.standard_normal((4, 1, 3, 2))
CASES = [second_gradient("depthwise_conv2d_grad_grad", convolve, X, W, "grad_input@GRAD")]
