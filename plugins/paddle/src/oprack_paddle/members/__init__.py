"""Methods that Paddle has on tensors, layers, optimizers and programs, beside the functions of its namespace."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def install(lookup: Callable[[str, str], Any]) -> None:
    """Give tensors the methods that Paddle's have; lookup finds a function of the namespace."""
    from oprack_paddle.members import tensor

    tensor.install(lookup)


def install_layers() -> None:
    """Give layers and optimizers the methods that Paddle's have."""
    from oprack_paddle.members import layer, training

    layer.install()
    training.install()
