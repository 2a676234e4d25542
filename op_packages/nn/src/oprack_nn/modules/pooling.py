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
    """Takes the maximum of each window of sequences [N, C, L].

    Args:
        kernel_size: Size of the window, one number or one per spatial dim.
        stride: Step between windows, one number or one per spatial dim; None: the size of the window.
        padding: Elements added around the input: one number, one per spatial dim, or two per spatial dim (before,
            after); "SAME" or "VALID".
        ceil_mode: Whether a last window that lies partly outside counts, so that the size of the result is rounded up.
        return_mask: Whether to return (maxima, places), the places as indices into the flattened spatial dims; goes
            with padding of numbers and ceil_mode=False.
    """

    rank, function = 1, P.max_pool1d


class MaxPool2D(_MaxPool):
    """Takes the maximum of each window of images [N, C, H, W]: op pool2d.

    Args:
        kernel_size: Size of the window, one number or one per spatial dim.
        stride: Step between windows, one number or one per spatial dim; None: the size of the window.
        padding: Elements added around the input: one number, one per spatial dim, or two per spatial dim (before,
            after); "SAME" or "VALID".
        ceil_mode: Whether a last window that lies partly outside counts, so that the size of the result is rounded up.
        return_mask: Whether to return (maxima, places), the places as indices into the flattened spatial dims; goes
            with padding of numbers and ceil_mode=False.
    """

    rank, function = 2, P.max_pool2d


class MaxPool3D(_MaxPool):
    """Takes the maximum of each window of volumes [N, C, D, H, W]: op pool3d.

    Args:
        kernel_size: Size of the window, one number or one per spatial dim.
        stride: Step between windows, one number or one per spatial dim; None: the size of the window.
        padding: Elements added around the input: one number, one per spatial dim, or two per spatial dim (before,
            after); "SAME" or "VALID".
        ceil_mode: Whether a last window that lies partly outside counts, so that the size of the result is rounded up.
        return_mask: Whether to return (maxima, places), the places as indices into the flattened spatial dims; goes
            with padding of numbers and ceil_mode=False.
    """

    rank, function = 3, P.max_pool3d


class AvgPool1D(_AvgPool):
    """Takes the mean of each window of sequences [N, C, L].

    Args:
        kernel_size: Size of the window, one number or one per spatial dim.
        stride: Step between windows, one number or one per spatial dim; None: the size of the window.
        padding: Elements added around the input: one number, one per spatial dim, or two per spatial dim (before,
            after); "SAME" or "VALID".
        ceil_mode: Whether a last window that lies partly outside counts, so that the size of the result is rounded up.
        exclusive: Whether the mean is that of the elements of the input alone; False: padding counts as zeros.
    """

    rank, function = 1, P.avg_pool1d


class AvgPool2D(_AvgPool):
    """Takes the mean of each window of images [N, C, H, W]: op pool2d.

    Args:
        kernel_size: Size of the window, one number or one per spatial dim.
        stride: Step between windows, one number or one per spatial dim; None: the size of the window.
        padding: Elements added around the input: one number, one per spatial dim, or two per spatial dim (before,
            after); "SAME" or "VALID".
        ceil_mode: Whether a last window that lies partly outside counts, so that the size of the result is rounded up.
        exclusive: Whether the mean is that of the elements of the input alone; False: padding counts as zeros.
    """

    rank, function = 2, P.avg_pool2d


class AvgPool3D(_AvgPool):
    """Takes the mean of each window of volumes [N, C, D, H, W]: op pool3d.

    Args:
        kernel_size: Size of the window, one number or one per spatial dim.
        stride: Step between windows, one number or one per spatial dim; None: the size of the window.
        padding: Elements added around the input: one number, one per spatial dim, or two per spatial dim (before,
            after); "SAME" or "VALID".
        ceil_mode: Whether a last window that lies partly outside counts, so that the size of the result is rounded up.
        exclusive: Whether the mean is that of the elements of the input alone; False: padding counts as zeros.
    """

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
    """Divides each sequence [N, C, L] into output_size windows and takes the mean of each.

    Args:
        output_size: Number of windows.
    """

    function = P.adaptive_avg_pool1d


class AdaptiveAvgPool2D(_Adaptive):
    """Divides each image [N, C, H, W] into a grid of windows and takes the mean of each: op pool2d.

    Args:
        output_size: Number of windows along each spatial dim, one number or one per dim; None keeps the size of a dim.
    """

    function = P.adaptive_avg_pool2d


class AdaptiveAvgPool3D(_Adaptive):
    """Divides each volume [N, C, D, H, W] into a grid of windows and takes the mean of each: op pool3d.

    Args:
        output_size: Number of windows along each spatial dim, one number or one per dim; None keeps the size of a dim.
    """

    function = P.adaptive_avg_pool3d


class AdaptiveMaxPool1D(_Adaptive):
    """Divides each sequence [N, C, L] into output_size windows and takes the maximum of each.

    Args:
        output_size: Number of windows.
    """

    function = P.adaptive_max_pool1d


class AdaptiveMaxPool2D(_Adaptive):
    """Divides each image [N, C, H, W] into a grid of windows and takes the maximum of each.

    Args:
        output_size: Number of windows along each spatial dim, one number or one per dim; None keeps the size of a dim.
    """

    function = P.adaptive_max_pool2d


class AdaptiveMaxPool3D(_Adaptive):
    """Divides each volume [N, C, D, H, W] into a grid of windows and takes the maximum of each.

    Args:
        output_size: Number of windows along each spatial dim, one number or one per dim; None keeps the size of a dim.
    """

    function = P.adaptive_max_pool3d
