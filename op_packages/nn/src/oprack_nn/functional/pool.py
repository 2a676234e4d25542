"""The largest element or the mean of windows of lines, images and volumes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from oprack import functional as F
from oprack.errors import InvalidArgumentError

from oprack_nn.functional._windows import Sizes, channels_first, line, line_paddings, paddings, per_dim, row
from oprack_nn.functional.common import lod_of

if TYPE_CHECKING:
    from oprack import Tensor


def max_pool1d(
    x: Tensor,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    padding: Sizes | str = 0,
    return_mask: bool = False,
    ceil_mode: bool = False,
) -> Any:
    """Takes the maximum of each window of a batch of sequences.

    Args:
        x: Sequences [N, C, L].
        kernel_size: Size of the window, one number or one per spatial dim.
        stride: Step between windows, one number or one per spatial dim; None: the size of the window.
        padding: Elements added around the input, which never are the maximum: one number, one per spatial dim, or two
            per spatial dim (before, after); "SAME" or "VALID".
        return_mask: Whether to return the places of the maxima too; goes with padding of numbers and ceil_mode=False.
        ceil_mode: Whether a last window that lies partly outside counts, so that the size of the result is rounded up.

    Returns:
        The maxima [N, C, L_out]; with return_mask (maxima, places), the places as int32 indices into L.

    Raises:
        InvalidArgumentError: return_mask is combined with "SAME", "VALID" or ceil_mode, or a size has another number of
            elements.
    """
    if return_mask:
        size, step = line(kernel_size, 1), line(kernel_size if stride is None else stride, 1)
        pads = line_paddings(padding)
        found = _with_mask("max_pool2d_with_index", x.unsqueeze(2), size, step, pads, ceil_mode)
        return tuple(v.squeeze(2) for v in found)
    return _line("max", x, kernel_size, stride, padding, ceil_mode)


def max_pool2d(
    x: Tensor,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    padding: Sizes | str = 0,
    return_mask: bool = False,
    ceil_mode: bool = False,
    data_format: str = "NCHW",
) -> Any:
    """Takes the maximum of each window of a batch of images.

    Args:
        x: Images [N, C, H, W], or [N, H, W, C] with data_format="NHWC".
        kernel_size: Size of the window, one number or one per spatial dim.
        stride: Step between windows, one number or one per spatial dim; None: the size of the window.
        padding: Elements added around the input, which never are the maximum: one number, one per spatial dim, or two
            per spatial dim (before, after); "SAME" or "VALID".
        return_mask: Whether to return the places of the maxima too; goes with padding of numbers and ceil_mode=False.
        ceil_mode: Whether a last window that lies partly outside counts, so that the size of the result is rounded up.
        data_format: "NCHW" or "NHWC"; with return_mask, "NCHW".

    Returns:
        The maxima [N, C, H_out, W_out]; with return_mask (maxima, places), the places as int32 indices into the
        flattened image H * W.

    Raises:
        InvalidArgumentError: return_mask is combined with "SAME", "VALID" or ceil_mode, or a size has another number of
            elements.
    """
    return _max(2, x, kernel_size, stride, padding, return_mask, ceil_mode, data_format)


def max_pool3d(
    x: Tensor,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    padding: Sizes | str = 0,
    return_mask: bool = False,
    ceil_mode: bool = False,
    data_format: str = "NCDHW",
) -> Any:
    """Takes the maximum of each window of a batch of volumes.

    Args:
        x: Volumes [N, C, D, H, W], or [N, D, H, W, C] with data_format="NDHWC".
        kernel_size: Size of the window, one number or one per spatial dim.
        stride: Step between windows, one number or one per spatial dim; None: the size of the window.
        padding: Elements added around the input, which never are the maximum: one number, one per spatial dim, or two
            per spatial dim (before, after); "SAME" or "VALID".
        return_mask: Whether to return the places of the maxima too; goes with padding of numbers and ceil_mode=False.
        ceil_mode: Whether a last window that lies partly outside counts, so that the size of the result is rounded up.
        data_format: "NCDHW" or "NDHWC"; with return_mask, "NCDHW".

    Returns:
        The maxima [N, C, D_out, H_out, W_out]; with return_mask (maxima, places), the places as int32 indices into the
        flattened volume D * H * W.

    Raises:
        InvalidArgumentError: return_mask is combined with "SAME", "VALID" or ceil_mode, or a size has another number of
            elements.
    """
    return _max(3, x, kernel_size, stride, padding, return_mask, ceil_mode, data_format)


def avg_pool1d(
    x: Tensor,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    padding: Sizes | str = 0,
    exclusive: bool = True,
    ceil_mode: bool = False,
) -> Tensor:
    """Takes the mean of each window of a batch of sequences.

    Args:
        x: Sequences [N, C, L].
        kernel_size: Size of the window, one number or one per spatial dim.
        stride: Step between windows, one number or one per spatial dim; None: the size of the window.
        padding: Zeros around the input: one number, two (before, after), "SAME" or "VALID".
        exclusive: Whether the mean is that of the elements of the input alone; False: padding counts as zeros.
        ceil_mode: Whether a last window that lies partly outside counts, so that the size of the result is rounded up.

    Returns:
        The means [N, C, L_out].

    Raises:
        InvalidArgumentError: A size has another number of elements, or padding is none of these.
    """
    return _line("avg", x, kernel_size, stride, padding, ceil_mode, exclusive=exclusive)


def avg_pool2d(
    x: Tensor,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    padding: Sizes | str = 0,
    ceil_mode: bool = False,
    exclusive: bool = True,
    data_format: str = "NCHW",
) -> Tensor:
    """Takes the mean of each window of a batch of images.

    Args:
        x: Images [N, C, H, W], or [N, H, W, C] with data_format="NHWC".
        kernel_size: Size of the window, one number or one per spatial dim.
        stride: Step between windows, one number or one per spatial dim; None: the size of the window.
        padding: Zeros around the input: one number, one per spatial dim, or two per spatial dim (before, after); "SAME"
            or "VALID".
        ceil_mode: Whether a last window that lies partly outside counts, so that the size of the result is rounded up.
        exclusive: Whether the mean is that of the elements of the input alone; False: padding counts as zeros.
        data_format: "NCHW" or "NHWC".

    Returns:
        The means [N, C, H_out, W_out], in the order of dims of x.

    Raises:
        InvalidArgumentError: A size has another number of elements, or padding or data_format is none of these.
    """
    return _pool("avg", 2, x, kernel_size, stride, padding, ceil_mode, data_format, exclusive=exclusive)


def avg_pool3d(
    x: Tensor,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    padding: Sizes | str = 0,
    ceil_mode: bool = False,
    exclusive: bool = True,
    data_format: str = "NCDHW",
) -> Tensor:
    """Takes the mean of each window of a batch of volumes.

    Args:
        x: Volumes [N, C, D, H, W], or [N, D, H, W, C] with data_format="NDHWC".
        kernel_size: Size of the window, one number or one per spatial dim.
        stride: Step between windows, one number or one per spatial dim; None: the size of the window.
        padding: Zeros around the input: one number, one per spatial dim, or two per spatial dim (before, after); "SAME"
            or "VALID".
        ceil_mode: Whether a last window that lies partly outside counts, so that the size of the result is rounded up.
        exclusive: Whether the mean is that of the elements of the input alone; False: padding counts as zeros.
        data_format: "NCDHW" or "NDHWC".

    Returns:
        The means [N, C, D_out, H_out, W_out], in the order of dims of x.

    Raises:
        InvalidArgumentError: A size has another number of elements, or padding or data_format is none of these.
    """
    return _pool("avg", 3, x, kernel_size, stride, padding, ceil_mode, data_format, exclusive=exclusive)


def adaptive_avg_pool1d(x: Tensor, output_size: int) -> Tensor:
    """Divides each sequence into output_size windows and takes the mean of each.

    Args:
        x: Sequences [N, C, L].
        output_size: Number of windows.

    Returns:
        The means [N, C, output_size].
    """
    return F.pool2d(x.unsqueeze(2), pooling_type="avg", ksize=line(output_size, 1), adaptive=True).squeeze(2)


def adaptive_avg_pool2d(x: Tensor, output_size: Sizes) -> Tensor:
    """Divides each image into a grid of windows and takes the mean of each.

    Args:
        x: Images [N, C, H, W].
        output_size: Number of windows along each spatial dim, one number or one per dim; None keeps the size of a dim.

    Returns:
        The means [N, C, *output_size].
    """
    return F.pool2d(x, pooling_type="avg", ksize=_sizes(x, output_size, 2), adaptive=True)


def adaptive_avg_pool3d(x: Tensor, output_size: Sizes) -> Tensor:
    """Divides each volume into a grid of windows and takes the mean of each.

    Args:
        x: Volumes [N, C, D, H, W].
        output_size: Number of windows along each spatial dim, one number or one per dim; None keeps the size of a dim.

    Returns:
        The means [N, C, *output_size].
    """
    return F.pool3d(x, pooling_type="avg", ksize=_sizes(x, output_size, 3), adaptive=True)


def adaptive_max_pool1d(x: Tensor, output_size: int) -> Tensor:
    """Divides each sequence into output_size windows and takes the maximum of each.

    Args:
        x: Sequences [N, C, L].
        output_size: Number of windows.

    Returns:
        The maxima [N, C, output_size].
    """
    found = F.max_pool2d_with_index(x.unsqueeze(2), ksize=line(output_size, 1), adaptive=True).out
    return lod_of(x, found.squeeze(2))


def adaptive_max_pool2d(x: Tensor, output_size: Sizes) -> Tensor:
    """Divides each image into a grid of windows and takes the maximum of each.

    Args:
        x: Images [N, C, H, W].
        output_size: Number of windows along each spatial dim, one number or one per dim; None keeps the size of a dim.

    Returns:
        The maxima [N, C, *output_size].
    """
    return lod_of(x, F.max_pool2d_with_index(x, ksize=_sizes(x, output_size, 2), adaptive=True).out)


def adaptive_max_pool3d(x: Tensor, output_size: Sizes) -> Tensor:
    """Divides each volume into a grid of windows and takes the maximum of each.

    Args:
        x: Volumes [N, C, D, H, W].
        output_size: Number of windows along each spatial dim, one number or one per dim; None keeps the size of a dim.

    Returns:
        The maxima [N, C, *output_size].
    """
    return lod_of(x, F.max_pool3d_with_index(x, ksize=_sizes(x, output_size, 3), adaptive=True).out)


def _sizes(x: Tensor, output_size: Any, rank: int) -> list[int]:
    """None keeps the size of a dim."""
    given = [output_size] * rank if output_size is None or isinstance(output_size, int) else list(output_size)
    return [x.shape[d - rank] if v is None else int(v) for d, v in enumerate(given)]


def _max(
    rank: int, x: Tensor, kernel: Sizes, stride: Any, padding: Any, mask: bool, ceil_mode: bool, data_format: str
) -> Any:
    if not mask:
        return _pool("max", rank, x, kernel, stride, padding, ceil_mode, data_format)
    sizes = per_dim(kernel, rank, "kernel_size")
    steps = sizes if stride is None else per_dim(stride, rank, "stride")
    return _with_mask(f"max_pool{rank}d_with_index", x, sizes, steps, paddings(padding, rank), ceil_mode)


def _with_mask(op_type: str, x: Tensor, sizes: Any, steps: Any, pads: dict[str, Any], ceil_mode: bool) -> Any:
    if ceil_mode or "paddings" not in pads:
        raise InvalidArgumentError(
            f"{op_type}: return_mask goes with paddings of numbers and ceil_mode=False; pad the images before"
        )
    found = getattr(F, op_type)(x, ksize=sizes, strides=steps, **pads)
    return lod_of(x, found.out), lod_of(x, found.mask)


def _pool(
    kind: str,
    rank: int,
    x: Tensor,
    kernel: Sizes,
    stride: Any,
    padding: Any,
    ceil_mode: bool,
    data_format: str,
    **more: Any,
) -> Tensor:
    sizes = per_dim(kernel, rank, "kernel_size")
    return getattr(F, f"pool{rank}d")(
        x,
        pooling_type=kind,
        ksize=sizes,
        strides=sizes if stride is None else per_dim(stride, rank, "stride"),
        ceil_mode=ceil_mode,
        data_format=channels_first(data_format, rank),
        **paddings(padding, rank),
        **more,
    )


def _line(kind: str, x: Tensor, kernel: Sizes, stride: Any, padding: Any, ceil_mode: bool, **more: Any) -> Tensor:
    found = F.pool2d(
        x.unsqueeze(row("NCL")),
        pooling_type=kind,
        ksize=line(kernel, 1),
        strides=line(kernel if stride is None else stride, 1),
        ceil_mode=ceil_mode,
        **line_paddings(padding),
        **more,
    )
    return found.squeeze(row("NCL"))
