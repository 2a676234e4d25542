"""The Python array API standard, as functions of tensors that call ops of other packs."""

from __future__ import annotations

from typing import Any


def __getattr__(name: str) -> Any:
    if name not in ("fft", "linalg"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    return importlib.import_module(f"{__name__}.{name}")
