r"""Convolutions of lines, images and volumes:
$$out_{n, k} = b_k + \sum_c w_{k, c} \star x_{n, c}$$, where the star is the cross-correlation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from oprack import functional as F
from oprack.errors import InvalidArgumentError

from oprack_nn.functional._windows import Sizes, channels_first, line, line_paddings, paddings, per_dim, row
from oprack_nn.functional.common import is_rows, lod_of

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
    r"""Applies a 1-D convolution (cross-correlation) to a batch of sequences.

    $$out_{n, k} = b_k + \sum_c w_{k, c} \star x_{n, c}$$; computed by op conv2d over images of height 1. Rows of
    sequences, which have LoD, are convolved each sequence for itself: op sequence_unfold of the pack sequence.

    Args:
        x: Sequences [N, C, L], or [N, L, C] with data_format="NLC"; or rows [N, C] with LoD.
        weight: Filters [filters, C / groups, size], of the dtype of x.
        bias: One number per filter, [filters]; None: no bias.
        stride: Step between windows, one number or one per spatial dim.
        padding: Zeros around the input: one number, one per spatial dim, or two per spatial dim (before, after); "SAME"
            pads so that stride 1 keeps the size, "VALID" pads nothing.
        dilation: Distance between the elements of a filter, one number or one per spatial dim.
        groups: Into how many groups channels and filters are divided; each filter sees the channels of its group alone.
        data_format: "NCL" or "NLC", the order of the dims of x and of the result.

    Returns:
        The sequences [N, filters, L_out], in the order of dims of x; or rows [M, filters] with LoD.

    Raises:
        InvalidArgumentError: A size has another number of elements, or padding or data_format is not one of those
            above; or padding is "SAME" with another stride than 1 for rows of sequences.
    """
    if is_rows(x):
        return _conv_of_rows(x, weight, bias, per_dim(stride, 1)[0], padding, per_dim(dilation, 1)[0], int(groups))
    attrs = line_paddings(padding) | {"strides": line(stride, 1), "dilations": line(dilation, 1), "groups": int(groups)}
    images = x.unsqueeze(row(data_format))
    found = F.conv2d(images, weight.unsqueeze(2), data_format=channels_first(data_format, 1), **attrs)
    return _biased(x, found.squeeze(row(data_format)), bias, data_format)


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
    r"""Applies a 2-D convolution (cross-correlation) to a batch of images.

    $$out_{n, k} = b_k + \sum_c w_{k, c} \star x_{n, c}$$, by op conv2d.

    Args:
        x: Images [N, C, H, W], or [N, H, W, C] with data_format="NHWC".
        weight: Filters [filters, C / groups, height, width], of the dtype of x.
        bias: One number per filter, [filters]; None: no bias.
        stride: Step between windows, one number or one per spatial dim.
        padding: Zeros around the input: one number, one per spatial dim, or two per spatial dim (before, after); "SAME"
            pads so that stride 1 keeps the size, "VALID" pads nothing.
        dilation: Distance between the elements of a filter, one number or one per spatial dim.
        groups: Into how many groups channels and filters are divided; each filter sees the channels of its group alone.
        data_format: "NCHW" or "NHWC", the order of the dims of x and of the result.

    Returns:
        The images [N, filters, H_out, W_out], in the order of dims of x.

    Raises:
        InvalidArgumentError: A size has another number of elements, or padding or data_format is not one of those
            above.
    """
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
    r"""Applies a 3-D convolution (cross-correlation) to a batch of volumes.

    $$out_{n, k} = b_k + \sum_c w_{k, c} \star x_{n, c}$$, by op conv3d.

    Args:
        x: Volumes [N, C, D, H, W], or [N, D, H, W, C] with data_format="NDHWC".
        weight: Filters [filters, C / groups, depth, height, width], of the dtype of x.
        bias: One number per filter, [filters]; None: no bias.
        stride: Step between windows, one number or one per spatial dim.
        padding: Zeros around the input: one number, one per spatial dim, or two per spatial dim (before, after); "SAME"
            pads so that stride 1 keeps the size, "VALID" pads nothing.
        dilation: Distance between the elements of a filter, one number or one per spatial dim.
        groups: Into how many groups channels and filters are divided; each filter sees the channels of its group alone.
        data_format: "NCDHW" or "NDHWC", the order of the dims of x and of the result.

    Returns:
        The volumes [N, filters, D_out, H_out, W_out], in the order of dims of x.

    Raises:
        InvalidArgumentError: A size has another number of elements, or padding or data_format is not one of those
            above.
    """
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
    """Applies a 1-D transposed convolution, the gradient of conv1d with respect to its input, to a batch of sequences.

    Computed by op conv2d_transpose over images of height 1.

    Args:
        x: Sequences [N, C, L], or [N, L, C] with data_format="NLC".
        weight: Filters [C, filters / groups, size], of the dtype of x.
        bias: One number per filter, [filters]; None: no bias.
        stride: Step between windows, one number or one per spatial dim.
        padding: Zeros around the input: one number, one per spatial dim, or two per spatial dim (before, after); "SAME"
            pads so that stride 1 keeps the size, "VALID" pads nothing.
        output_padding: Elements added at the end of each spatial dim of the result, one number or one per dim; ignored
            if output_size is given.
        groups: Into how many groups channels and filters are divided; each filter sees the channels of its group alone.
        dilation: Distance between the elements of a filter, one number or one per spatial dim.
        output_size: Spatial size of the result, one number or one per dim, among those that the stride leaves open;
            None: the smallest one plus output_padding.
        data_format: "NCL" or "NLC", the order of the dims of x and of the result.

    Returns:
        The sequences [N, filters, L_out], in the order of dims of x.

    Raises:
        InvalidArgumentError: A size has another number of elements, or padding or data_format is not one of those
            above.
    """
    attrs = line_paddings(padding) | {"strides": line(stride, 1), "dilations": line(dilation, 1), "groups": int(groups)}
    attrs |= _output(1, output_padding, output_size, ahead=True)
    images = x.unsqueeze(row(data_format))
    found = F.conv2d_transpose(images, weight.unsqueeze(2), data_format=channels_first(data_format, 1), **attrs)
    return _biased(x, found.squeeze(row(data_format)), bias, data_format)


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
    """Applies a 2-D transposed convolution, the gradient of conv2d with respect to its input, to a batch of images.

    Args:
        x: Images [N, C, H, W], or [N, H, W, C] with data_format="NHWC".
        weight: Filters [C, filters / groups, height, width], of the dtype of x.
        bias: One number per filter, [filters]; None: no bias.
        stride: Step between windows, one number or one per spatial dim.
        padding: Zeros around the input: one number, one per spatial dim, or two per spatial dim (before, after); "SAME"
            pads so that stride 1 keeps the size, "VALID" pads nothing.
        output_padding: Elements added at the end of each spatial dim of the result, one number or one per dim; ignored
            if output_size is given.
        dilation: Distance between the elements of a filter, one number or one per spatial dim.
        groups: Into how many groups channels and filters are divided; each filter sees the channels of its group alone.
        output_size: Spatial size of the result, one number or one per dim, among those that the stride leaves open;
            None: the smallest one plus output_padding.
        data_format: "NCHW" or "NHWC", the order of the dims of x and of the result.

    Returns:
        The images [N, filters, H_out, W_out], in the order of dims of x.

    Raises:
        InvalidArgumentError: A size has another number of elements, or padding or data_format is not one of those
            above.
    """
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
    """Applies a 3-D transposed convolution, the gradient of conv3d with respect to its input, to a batch of volumes.

    Args:
        x: Volumes [N, C, D, H, W], or [N, D, H, W, C] with data_format="NDHWC".
        weight: Filters [C, filters / groups, depth, height, width], of the dtype of x.
        bias: One number per filter, [filters]; None: no bias.
        stride: Step between windows, one number or one per spatial dim.
        padding: Zeros around the input: one number, one per spatial dim, or two per spatial dim (before, after); "SAME"
            pads so that stride 1 keeps the size, "VALID" pads nothing.
        output_padding: Elements added at the end of each spatial dim of the result, one number or one per dim; ignored
            if output_size is given.
        groups: Into how many groups channels and filters are divided; each filter sees the channels of its group alone.
        dilation: Distance between the elements of a filter, one number or one per spatial dim.
        output_size: Spatial size of the result, one number or one per dim, among those that the stride leaves open;
            None: the smallest one plus output_padding.
        data_format: "NCDHW" or "NDHWC", the order of the dims of x and of the result.

    Returns:
        The volumes [N, filters, D_out, H_out, W_out], in the order of dims of x.

    Raises:
        InvalidArgumentError: A size has another number of elements, or padding or data_format is not one of those
            above.
    """
    more = _output(3, output_padding, output_size)
    format_ = channels_first(data_format, 3)
    attrs = paddings(padding, 3) | more | {"strides": per_dim(stride, 3), "dilations": per_dim(dilation, 3)}
    found = F.conv3d_transpose(x, weight, groups=int(groups), data_format=format_, **attrs)
    return _biased(x, found, bias, data_format)


def _conv_of_rows(
    x: Tensor, weight: Tensor, bias: Tensor | None, stride: int, padding: Sizes | str, dilation: int, groups: int
) -> Tensor:
    """conv1d along each sequence of rows: a product of its windows, in each group of channels."""
    filters, channels, size = weight.shape
    if str(padding).upper() == "SAME":
        dilation = 1  # as op conv2d takes it, Paddle's
    around = _around(padding, dilation * (size - 1), stride)
    windows = F.sequence_unfold(x, size=size, stride=stride, dilation=dilation, padding=around)
    if groups == 1:
        y = F.mul(windows, weight.transpose([2, 1, 0]).reshape([size * channels, filters]))
    else:
        by_group = windows.reshape([0, size, groups, channels]).transpose([2, 0, 1, 3])
        flat = by_group.reshape([groups, -1, size * channels])
        filter_ = weight.reshape([groups, filters // groups, channels, size]).transpose([0, 3, 2, 1])
        y = F.matmul_v2(flat, filter_.reshape([groups, size * channels, filters // groups]))
        y = lod_of(windows, y.transpose([1, 0, 2]).reshape([-1, filters]))
    return y if bias is None else F.elementwise_add(y, bias)


def _around(padding: Sizes | str, reach: int, stride: int) -> list[int]:
    """Rows of zeros before and behind a sequence, where windows reach over so many rows behind their first."""
    found = paddings(padding, 1)
    if found.get("padding_algorithm") == "SAME":
        if stride != 1:
            raise InvalidArgumentError(
                f"conv1d: padding is {padding!r} and stride {stride} for sequences of many lengths; expected numbers, "
                "or stride 1"
            )
        return [reach // 2, reach - reach // 2]
    sizes = found.get("paddings", [0])
    return [int(sizes[0]), int(sizes[-1])]


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
    return _biased(x, getattr(F, op_type)(x, weight, **attrs, **more), bias, data_format)


def _output(rank: int, padding: Sizes, size: Sizes | None, ahead: bool = False) -> dict[str, list[int]]:
    """The attributes that choose among the sizes from which the convolution would come."""
    first: list[int] = [0] if ahead else []
    if size is not None:
        return {"output_size": [*([1] if ahead else []), *per_dim(size, rank, "output_size")]}
    sizes = per_dim(padding, rank, "output_padding")
    return {"output_padding": [*first, *sizes]} if any(sizes) else {}


def _biased(x: Tensor, found: Tensor, bias: Tensor | None, data_format: str) -> Tensor:
    found = lod_of(x, found)
    return found if bias is None else F.elementwise_add(found, bias, axis=1 if data_format.startswith("NC") else -1)
