"""What Paddle's objects have beside the functions of its namespace: methods of tensors, layers, optimizers, programs."""

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
