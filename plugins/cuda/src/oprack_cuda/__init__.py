"""Place cuda for oprack, through CuPy. Nothing here imports CuPy before it is used."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

_NAMES = {"allow_tf32": "dnn", "refused": "dnn", "graphs_used": "graphs", "use_graphs": "graphs"}


def status() -> str:
    """One line: CuPy, driver and devices, or why place cuda can't be used in this process."""
    from oprack_cuda.library import CUDA

    return CUDA.status()


def __getattr__(name: str) -> Callable[..., Any]:
    if name not in _NAMES:
        raise AttributeError(f"module 'oprack_cuda' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"oprack_cuda.{_NAMES[name]}"), name)


__all__ = ["allow_tf32", "graphs_used", "refused", "status", "use_graphs"]
