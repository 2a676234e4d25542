"""Kernel library over oneDNN's C API: float32 convolution, matrix products, pooling, normalisation, activations.

Nothing is loaded before the first op with such a kernel runs. `status()` says whether the library serves this process
and why not; `set_num_threads(n)` sets how many threads its primitives use, in every Python thread.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = ["num_threads", "set_num_threads", "status"]


def __getattr__(name: str) -> Callable[..., Any]:
    if name in __all__:
        from oprack_onednn.dnnl import library

        function: Callable[..., Any] = getattr(library, name)
        return function
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
