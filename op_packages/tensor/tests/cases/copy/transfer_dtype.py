"""Cases of transfer_dtype: the gradient, and complex numbers, which lose their imaginary part."""

from __future__ import annotations

import numpy as np
from oprack.testing import OpCase

X = np.array([1.5, -2.25, 3.0])
CASES = [
    OpCase("transfer_dtype", {"X": X}, {"in_dtype": 6, "out_dtype": 6}, {"Out": X}, grads=["X"], name="slope"),
    OpCase(
        "transfer_dtype",
        {"X": X},
        {"in_dtype": 6, "out_dtype": 2},
        {"Out": np.array([1, -2, 3], np.int32)},
        name="integers",
    ),
    OpCase("transfer_dtype", {"X": X + 1j}, {"in_dtype": 24, "out_dtype": 6}, {"Out": X}, name="complex"),
]
