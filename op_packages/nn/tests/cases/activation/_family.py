"""Input of activations with attributes that 1.x programs write and Paddle 2.6 ignores.

Without the attributes both versions agree with the defaults.
"""

from __future__ import annotations

import numpy as np

X = np.array([-5.1, -2.9, -1.0, -0.2, 0.3, 1.4, 2.9, 3.7, 7.5])
