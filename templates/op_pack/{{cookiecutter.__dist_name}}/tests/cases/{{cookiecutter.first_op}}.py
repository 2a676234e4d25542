"""Cases of {{ cookiecutter.first_op }}; expected outputs come from a formula, never from the op itself."""

from __future__ import annotations

import numpy as np

from oprack import LoDTensor
from oprack.testing import OpCase

x = np.array([[1.0, -2.0, 0.5], [0.0, 3.0, -1.5]])
CASES = [
    OpCase(
        "{{ cookiecutter.first_op }}",
        {"X": x.astype(dtype)},
        {"factor": 0.5},
        {"Out": (0.5 * x**2).astype(dtype)},
        grads=["X"],
        name=dtype,
    )
    for dtype in ("float32", "float64")
]
CASES += [
    OpCase("{{ cookiecutter.first_op }}", {"X": np.zeros((0, 3))}, outputs={"Out": np.zeros((0, 3))}, name="empty"),
    OpCase(
        "{{ cookiecutter.first_op }}",
        {"X": LoDTensor(x, [[0, 0, 2, 2]])},
        outputs={"Out": LoDTensor(x**2, [[0, 0, 2, 2]])},
        grads=["X"],
        name="empty-sequences",
    ),
    OpCase(
        "{{ cookiecutter.first_op }}_grad",
        {"X": x, "Out@GRAD": np.ones_like(x)},
        {"factor": 2.0},
        {"X@GRAD": 4 * x},
    ),
]
