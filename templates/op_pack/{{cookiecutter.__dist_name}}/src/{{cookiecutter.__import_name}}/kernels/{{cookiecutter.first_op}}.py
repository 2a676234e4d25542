"""Kernels of {{ cookiecutter.first_op }} and its gradient."""

from __future__ import annotations

from typing import Any

from oprack.kernel import kernel
from oprack.types import FLOATS


{% set place = '("cpu", "cuda")' if cookiecutter.places == "cpu and cuda" else '"cpu"' -%}
@kernel("{{ cookiecutter.first_op }}", place={{ place }}, dtypes=FLOATS)
def {{ cookiecutter.first_op }}(X: Any, *, factor: float) -> Any:
    return factor * X * X


@kernel("{{ cookiecutter.first_op }}_grad", place={{ place }}, dtypes=FLOATS)
def {{ cookiecutter.first_op }}_grad(X: Any, Out_grad: Any, *, factor: float) -> Any:
    return 2 * factor * X * Out_grad
