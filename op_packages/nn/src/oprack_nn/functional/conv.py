r"""Convolutions of lines, images and volumes:
$$out_{n, k} = b_k + \sum_c w_{k, c} \star x_{n, c}$$, where the star is the cross-correlation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from oprack import functional as F

from oprack_nn.functional._windows import Sizes, channels_first, line, line_paddings, paddings, per_dim, row

if TYPE_CHECKING:
    from oprack import Tensor


def conv1d(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Sizes = 1,
    padding: Sizes | str = 0,
    dilation: Sizes = 1,
    groups: int = 1,
    data_format: str = "NCL",
) -> Tensor:
    """Of lines [N, C, L], with weight [filters, C / groups, size]; padding: numbers, "SAME" or "VALID"."""
    attrs = line_paddings(padding) | {"strides": line(stride, 1), "dilations": line(dilation, 1), "groups": int(groups)}
    images = x.unsqueeze(row(data_format))
    found = F.conv2d(images, weight.unsqueeze(2), data_format=channels_first(data_format, 1), **attrs)
    return _biased(found.squeeze(row(data_format)), bias, data_format)


def conv2d(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Sizes = 1,
    padding: Sizes | str = 0,
    dilation: Sizes = 1,
    groups: int = 1,
    data_format: str = "NCHW",
) -> Tensor:
    """Of images [N, C, H, W], with weight [filters, C / groups, H, W]; padding: numbers, "SAME" or "VALID"."""
    return _conv("conv2d", 2, x, weight, bias, stride, padding, dilation, groups, data_format)


def conv3d(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Sizes = 1,
    padding: Sizes | str = 0,
    dilation: Sizes = 1,
    groups: int = 1,
    data_format: str = "NCDHW",
) -> Tensor:
    """Of volumes [N, C, D, H, W], with weight [filters, C / groups, D, H, W]; padding: numbers, "SAME" or "VALID"."""
    return _conv("conv3d", 3, x, weight, bias, stride, padding, dilation, groups, data_format)


def conv1d_transpose(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Sizes = 1,
    padding: Sizes | str = 0,
    output_padding: Sizes = 0,
    groups: int = 1,
    dilation: Sizes = 1,
    output_size: Sizes | None = None,
    data_format: str = "NCL",
) -> Tensor:
    """The gradient of conv1d as an operation of its own: lines [N, C, L], weight [C, filters / groups, size]."""
    attrs = line_paddings(padding) | {"strides": line(stride, 1), "dilations": line(dilation, 1), "groups": int(groups)}
    attrs |= _output(1, output_padding, output_size, ahead=True)
    images = x.unsqueeze(row(data_format))
    found = F.conv2d_transpose(images, weight.unsqueeze(2), data_format=channels_first(data_format, 1), **attrs)
    return _biased(found.squeeze(row(data_format)), bias, data_format)


def conv2d_transpose(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Sizes = 1,
    padding: Sizes | str = 0,
    output_padding: Sizes = 0,
    dilation: Sizes = 1,
    groups: int = 1,
    output_size: Sizes | None = None,
    data_format: str = "NCHW",
) -> Tensor:
    """The gradient of conv2d as an operation of its own: images [N, C, H, W], weight [C, filters / groups, H, W]."""
    more = _output(2, output_padding, output_size)
    return _conv("conv2d_transpose", 2, x, weight, bias, stride, padding, dilation, groups, data_format, **more)


def conv3d_transpose(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Sizes = 1,
    padding: Sizes | str = 0,
    output_padding: Sizes = 0,
    groups: int = 1,
    dilation: Sizes = 1,
    output_size: Sizes | None = None,
    data_format: str = "NCDHW",
) -> Tensor:
    """The gradient of conv3d as an operation of its own: volumes [N, C, D, H, W], weight [C, filters / groups, ...]."""
    more = _output(3, output_padding, output_size)
    format_ = channels_first(data_format, 3)
    attrs = paddings(padding, 3) | more | {"strides": per_dim(stride, 3), "dilations": per_dim(dilation, 3)}
    found = F.conv3d_transpose(x, weight, groups=int(groups), data_format=format_, **attrs)
    return _biased(found, bias, data_format)


def _conv(
    op_type: str,
    rank: int,
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: Sizes,
    padding: Sizes | str,
    dilation: Sizes,
    groups: int,
    data_format: str,
    **more: Any,
) -> Tensor:
    attrs = paddings(padding, rank) | {
        "strides": per_dim(stride, rank, "stride"),
        "dilations": per_dim(dilation, rank, "dilation"),
        "groups": int(groups),
        "data_format": channels_first(data_format, rank),
    }
    return _biased(getattr(F, op_type)(x, weight, **attrs, **more), bias, data_format)


def _output(rank: int, padding: Sizes, size: Sizes | None, ahead: bool = False) -> dict[str, list[int]]:
    """The attributes that choose among the sizes from which the convolution would come."""
    first: list[int] = [0] if ahead else []
    if size is not None:
        return {"output_size": [*([1] if ahead else []), *per_dim(size, rank, "output_size")]}
    sizes = per_dim(padding, rank, "output_padding")
    return {"output_padding": [*first, *sizes]} if any(sizes) else {}


def _biased(x: Tensor, bias: Tensor | None, data_format: str) -> Tensor:
    if bias is None:
        return x
    return F.elementwise_add(x, bias, axis=1 if data_format.startswith("NC") else -1)
