"""The kernel of lgamma: a function that jax compiles for each shape."""

from __future__ import annotations

import importlib.util
from functools import cache
from typing import Any

import numpy as np
from oprack.kernel import Array, Predicate, kernel
from oprack.types import FLOATS

INSTALLED = Predicate(lambda query: importlib.util.find_spec("jax") is not None, "jax is installed")


@cache
def compiled() -> Any:
    """The function, made on first use."""
    import jax

    return jax.jit(jax.scipy.special.gammaln)


@kernel("lgamma", library="jax", dtypes=FLOATS, priority=4, when=INSTALLED)
def lgamma(X: Array) -> Array:
    import jax

    with jax.enable_x64(True):  # or float64 becomes float32
        return np.array(compiled()(X))  # what jax gives can't be written to
