"""Pooling of lines [N, C, L], images [N, C, H, W] and volumes [N, C, D, H, W]. stride: default the window."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar

from oprack.nn import Module

from oprack_nn.functional import pool as P
from oprack_nn.functional._windows import Sizes, paddings, per_dim

if TYPE_CHECKING:
    from oprack import Tensor


class _Pool(Module):
    rank = 2
    function: ClassVar[Callable[..., Any]]

    def _set(self, kernel_size: Sizes, stride: Sizes | None, padding: Any, **more: Any) -> None:
        name = type(self).__name__
        self.kernel_size = per_dim(kernel_size, self.rank, f"{name}: kernel_size")
        self.stride = self.kernel_size if stride is None else per_dim(stride, self.rank, f"{name}: stride")
        paddings(padding, self.rank)  # refuses what is none
        self.padding, self.more = padding, more

    def forward(self, x: Tensor) -> Any:
        return type(self).function(x, self.kernel_size, self.stride, self.padding, **self.more)

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding!r}"


class _MaxPool(_Pool):
    def __init__(
        self,
        kernel_size: Sizes,
        stride: Sizes | None = None,
        padding: Sizes | str = 0,
        ceil_mode: bool = False,
        return_mask: bool = False,
    ) -> None:
        super().__init__()
        self._set(kernel_size, stride, padding, ceil_mode=ceil_mode, return_mask=return_mask)


class _AvgPool(_Pool):
    def __init__(
        self,
        kernel_size: Sizes,
        stride: Sizes | None = None,
        padding: Sizes | str = 0,
        ceil_mode: bool = False,
        exclusive: bool = True,
    ) -> None:
        super().__init__()
        self._set(kernel_size, stride, padding, ceil_mode=ceil_mode, exclusive=exclusive)


class MaxPool1D(_MaxPool):
    """The largest of each window of lines; return_mask: where it is, too."""

    rank, function = 1, P.max_pool1d


class MaxPool2D(_MaxPool):
    """The largest of each window of images: op pool2d; return_mask: where it is, too. stride: default the window."""

    rank, function = 2, P.max_pool2d


class MaxPool3D(_MaxPool):
    """The largest of each window of volumes: op pool3d; return_mask: where it is, too."""

    rank, function = 3, P.max_pool3d


class AvgPool1D(_AvgPool):
    """The mean of each window of lines; exclusive: padding does not count."""

    rank, function = 1, P.avg_pool1d


class AvgPool2D(_AvgPool):
    """The mean of each window of images: op pool2d; exclusive: padding does not count. stride: default the window."""

    rank, function = 2, P.avg_pool2d


class AvgPool3D(_AvgPool):
    """The mean of each window of volumes: op pool3d; exclusive: padding does not count."""

    rank, function = 3, P.avg_pool3d


class _Adaptive(Module):
    function: ClassVar[Callable[..., Any]]

    def __init__(self, output_size: Any) -> None:
        super().__init__()
        self.output_size = output_size

    def forward(self, x: Tensor) -> Tensor:
        return type(self).function(x, self.output_size)

    def extra_repr(self) -> str:
        return f"output_size={self.output_size}"


class AdaptiveAvgPool1D(_Adaptive):
    """Means of as many windows as output_size says."""

    function = P.adaptive_avg_pool1d


class AdaptiveAvgPool2D(_Adaptive):
    """Means of as many windows as output_size says: op pool2d; None keeps the size of a dim."""

    function = P.adaptive_avg_pool2d


class AdaptiveAvgPool3D(_Adaptive):
    """Means of as many windows as output_size says: op pool3d; None keeps the size of a dim."""

    function = P.adaptive_avg_pool3d


class AdaptiveMaxPool1D(_Adaptive):
    """The largest of as many windows as output_size says."""

    function = P.adaptive_max_pool1d


class AdaptiveMaxPool2D(_Adaptive):
    """The largest of as many windows as output_size says; None keeps the size of a dim."""

    function = P.adaptive_max_pool2d


class AdaptiveMaxPool3D(_Adaptive):
    """The largest of as many windows as output_size says; None keeps the size of a dim."""

    function = P.adaptive_max_pool3d
