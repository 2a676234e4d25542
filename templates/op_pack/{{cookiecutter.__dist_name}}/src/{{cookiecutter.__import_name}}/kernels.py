"""Kernels; this module is imported when one of its ops first runs."""

from __future__ import annotations

from oprack.kernel import Array, kernel
from oprack.types import FLOATS


{% set place = '("cpu", "cuda")' if cookiecutter.places == "cpu and cuda" else '"cpu"' -%}
@kernel("{{ cookiecutter.first_op }}", place={{ place }}, dtypes=FLOATS)
def {{ cookiecutter.first_op }}(X: Array, *, factor: float) -> Array:
    return factor * X * X


@kernel("{{ cookiecutter.first_op }}_grad", place={{ place }}, dtypes=FLOATS)
def {{ cookiecutter.first_op }}_grad(X: Array, Out_grad: Array, *, factor: float) -> Array:
    return 2 * factor * X * Out_grad
