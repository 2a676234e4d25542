"""Values that cases of several rules share."""

from __future__ import annotations

import numpy as np

rate = np.array([0.5])
param, grad, velocity = np.array([1.0, -2.0]), np.array([4.0, 2.0]), np.array([1.0, 1.0])
