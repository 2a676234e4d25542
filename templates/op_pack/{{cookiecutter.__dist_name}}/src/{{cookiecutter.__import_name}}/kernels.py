"""Kernels; this module is imported when one of its ops first runs."""

from __future__ import annotations

from oprack.kernel import Array, {% if cookiecutter.native == "C" %}Predicate, {% endif %}kernel
from oprack.types import FLOATS
{% if cookiecutter.native == "C" %}
from {{ cookiecutter.__import_name }} import native

BUILT = Predicate(lambda query: native.library() is not None, "{{ cookiecutter.__dist_name }} has C code for this platform")
{% endif %}

{% set place = '("cpu", "cuda")' if cookiecutter.places == "cpu and cuda" else '"cpu"' -%}
@kernel("{{ cookiecutter.first_op }}", place={{ place }}, dtypes=FLOATS)
def {{ cookiecutter.first_op }}(X: Array, *, factor: float) -> Array:
    return factor * X * X

{% if cookiecutter.native == "C" %}
@kernel("{{ cookiecutter.first_op }}", dtypes={"float32"}, priority=10, when=BUILT)
def {{ cookiecutter.first_op }}_in_c(X: Array, *, factor: float) -> Array:
    return native.{{ cookiecutter.first_op }}(X, factor)

{% endif %}
@kernel("{{ cookiecutter.first_op }}_grad", place={{ place }}, dtypes=FLOATS)
def {{ cookiecutter.first_op }}_grad(X: Array, Out_grad: Array, *, factor: float) -> Array:
    return 2 * factor * X * Out_grad
