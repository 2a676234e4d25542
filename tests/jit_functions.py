"""What tests of jit call: a net or two, eagerly and captured, and functions that count how often they are captured."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import oprack
import pytest
from oprack import nn, to_tensor

# Of the test's argument `through`: what a function becomes
eager_and_jit = pytest.mark.parametrize("through", [lambda f: f, oprack.jit], ids=["eager", "jit"])


def tensor_of(array: Any, grad: bool = False) -> Any:
    """A float32 tensor."""
    return to_tensor(np.array(array, np.float32), requires_grad=grad)


def scale_in_place(x: Any) -> None:
    """Multiply by 10, unseen by autograd."""
    with oprack.no_grad():
        x.scale_(10.0)


def tripling(n: int = 2) -> nn.Linear:
    """A layer that multiplies by 3."""
    net = nn.Linear(n, n)
    net.weight.set_value(np.eye(n, dtype=np.float32) * 3)
    net.bias.set_value(np.zeros(n, np.float32))
    return net


class Normed(nn.Module):
    """Subtracts a buffer; what comes behind may be replaced."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("mean", to_tensor(np.zeros(2, np.float32)))
        self.act = None

    def forward(self, x: Any) -> Any:
        y = x - self.mean
        return y if self.act is None else self.act(y)


def counted(function: Callable[..., Any]) -> tuple[Any, list[int]]:
    """A jitted function, and a list that grows with each capture."""
    calls: list[int] = []

    def call(*args: Any, **kwargs: Any) -> Any:
        calls.append(1)
        return function(*args, **kwargs)

    return oprack.jit(call), calls
