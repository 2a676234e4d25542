"""Methods that Paddle has on tensors, layers, optimizers and programs, beside the functions of its namespace."""

from __future__ import annotations


def install() -> None:
    """Give the classes of oprack the methods that Paddle's have."""
    from oprack_paddle.members import tensor

    tensor.install()


def install_layers() -> None:
    """Give layers and optimizers the methods that Paddle's have."""
    from oprack_paddle.members import layer, training

    layer.install()
    training.install()
