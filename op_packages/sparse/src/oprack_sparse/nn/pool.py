"""Pooling of listed points."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oprack.nn import Module

from oprack_sparse.nn import functional as S

if TYPE_CHECKING:
    from oprack import Tensor


class MaxPool3D(Module):
    """The largest listed point of each window: op sparse_maxpool."""

    def __init__(
        self,
        kernel_size: S.Sizes,
        stride: S.Sizes | None = None,
        padding: S.Sizes = 0,
        ceil_mode: bool = False,
        data_format: str = "NDHWC",
    ) -> None:
        super().__init__()
        self.kernel_size, self.stride, self.padding = kernel_size, stride, padding
        self.ceil_mode, self.data_format = ceil_mode, data_format

    def forward(self, x: Tensor) -> Tensor:
        return S.max_pool3d(x, self.kernel_size, self.stride, self.padding, self.ceil_mode, self.data_format)
