"""The largest element or the mean of windows of lines, images and volumes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from oprack import functional as F
from oprack.errors import InvalidArgumentError

from oprack_nn.functional._windows import Sizes, channels_first, line, line_paddings, paddings, per_dim, row

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
    """The largest of each window of lines [N, C, L]; return_mask: where it is, too. stride: default the window."""
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
    """The largest of each window of images [N, C, H, W]; return_mask: where it is, too. stride: default the window."""
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
    """The largest of each window of volumes [N, C, D, H, W]; return_mask: where it is, too."""
    return _max(3, x, kernel_size, stride, padding, return_mask, ceil_mode, data_format)


def avg_pool1d(
    x: Tensor,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    padding: Sizes | str = 0,
    exclusive: bool = True,
    ceil_mode: bool = False,
) -> Tensor:
    """The mean of each window of lines [N, C, L]; exclusive: padding does not count."""
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
    """The mean of each window of images [N, C, H, W]; exclusive: padding does not count."""
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
    """The mean of each window of volumes [N, C, D, H, W]; exclusive: padding does not count."""
    return _pool("avg", 3, x, kernel_size, stride, padding, ceil_mode, data_format, exclusive=exclusive)


def adaptive_avg_pool1d(x: Tensor, output_size: int) -> Tensor:
    """Means of so many windows as output_size says: [N, C, L] to [N, C, output_size]."""
    return F.pool2d(x.unsqueeze(2), pooling_type="avg", ksize=line(output_size, 1), adaptive=True).squeeze(2)


def adaptive_avg_pool2d(x: Tensor, output_size: Sizes) -> Tensor:
    """Means of so many windows as output_size says: [N, C, H, W] to [N, C, *output_size]."""
    return F.pool2d(x, pooling_type="avg", ksize=_sizes(x, output_size, 2), adaptive=True)


def adaptive_avg_pool3d(x: Tensor, output_size: Sizes) -> Tensor:
    """Means of so many windows as output_size says: [N, C, D, H, W] to [N, C, *output_size]."""
    return F.pool3d(x, pooling_type="avg", ksize=_sizes(x, output_size, 3), adaptive=True)


def adaptive_max_pool1d(x: Tensor, output_size: int) -> Tensor:
    """The largest of so many windows as output_size says: [N, C, L] to [N, C, output_size]."""
    return F.max_pool2d_with_index(x.unsqueeze(2), ksize=line(output_size, 1), adaptive=True).out.squeeze(2)


def adaptive_max_pool2d(x: Tensor, output_size: Sizes) -> Tensor:
    """The largest of so many windows as output_size says: [N, C, H, W] to [N, C, *output_size]."""
    return F.max_pool2d_with_index(x, ksize=_sizes(x, output_size, 2), adaptive=True).out


def adaptive_max_pool3d(x: Tensor, output_size: Sizes) -> Tensor:
    """The largest of so many windows as output_size says: [N, C, D, H, W] to [N, C, *output_size]."""
    return F.max_pool3d_with_index(x, ksize=_sizes(x, output_size, 3), adaptive=True).out


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
    return found.out, found.mask


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
