"""Activations of sparse tensors."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oprack.nn import Module

from oprack_sparse.nn import functional as S

if TYPE_CHECKING:
    from oprack import Tensor


class ReLU(Module):
    """max(x, 0) of the listed elements."""

    def forward(self, x: Tensor) -> Tensor:
        return S.relu(x)


class ReLU6(Module):
    """min(max(x, 0), 6) of the listed elements."""

    def forward(self, x: Tensor) -> Tensor:
        return S.relu6(x)


class LeakyReLU(Module):
    """x where it is positive, else x times the slope, of the listed elements."""

    def __init__(self, negative_slope: float = 0.01) -> None:
        super().__init__()
        self.negative_slope = negative_slope

    def forward(self, x: Tensor) -> Tensor:
        return S.leaky_relu(x, self.negative_slope)


class Softmax(Module):
    """softmax over the listed elements along an axis."""

    def __init__(self, axis: int = -1) -> None:
        super().__init__()
        self.axis = axis

    def forward(self, x: Tensor) -> Tensor:
        return S.softmax(x, self.axis)
