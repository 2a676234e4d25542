"""paddle.version, and paddle.__version__: the Paddle whose interface is served."""

from __future__ import annotations

from oprack.inference.enums import PADDLE_VERSION

__all__ = ["__version__", "full_version", "major", "minor", "patch", "rc"]

__version__ = full_version = PADDLE_VERSION
major, minor, patch = PADDLE_VERSION.split(".")
rc = "0"


def cuda() -> str:
    """The CUDA with which the kernels were compiled: "False", as a Paddle for CPUs says."""
    return "False"


def cudnn() -> str:
    """The cuDNN with which the kernels were compiled: "False"."""
    return "False"


def xpu() -> str:
    """The library of Kunlun's XPUs: "False"."""
    return "False"


def show() -> None:
    """Print the version."""
    print(f"full_version: {full_version}\nmajor: {major}\nminor: {minor}\npatch: {patch}\nrc: {rc}\nserved by: oprack")
