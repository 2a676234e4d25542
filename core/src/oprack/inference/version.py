"""Versions: of oprack, and of the Paddle whose interface it follows."""

from __future__ import annotations

PADDLE_VERSION = "2.6.2"
"""Version of Paddle whose interface and numbers oprack.inference follows."""


def get_version() -> str:
    """Versions of oprack and of the Paddle interface that it follows.

    Returns:
        A text of two lines.
    """
    from importlib_metadata import version

    return f"version: {PADDLE_VERSION}\noprack: {version('oprack')}\n"


def get_trt_compile_version() -> tuple[int, int, int]:
    """(0, 0, 0): there is no TensorRT.

    Returns:
        Three zeros.
    """
    return (0, 0, 0)


def get_trt_runtime_version() -> tuple[int, int, int]:
    """(0, 0, 0): there is no TensorRT.

    Returns:
        Three zeros.
    """
    return (0, 0, 0)
