"""Place cuda for oprack, through CuPy. Nothing here imports CuPy before it is used."""

from __future__ import annotations


def status() -> str:
    """One line: CuPy, driver and devices, or why place cuda can't be used in this process."""
    from oprack_cuda.library import CUDA

    return CUDA.status()


__all__ = ["status"]
