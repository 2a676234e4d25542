"""Numbers that cases of complex ops share."""

from __future__ import annotations

import numpy as np

re = np.array([[1.5, -2.0, 0.0], [0.25, 3.0, -1.0]], np.float32)
im = np.array([[0.5, 1.0, -4.0], [-0.75, 0.0, 2.5]], np.float32)
z = (re + 1j * im).astype(np.complex64)
no_z = np.zeros((0, 3), np.complex64)
