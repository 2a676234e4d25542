"""Functions of networks over sparse tensors: `oprack.sparse.nn.functional`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from oprack import functional as F
from oprack.errors import InvalidArgumentError

if TYPE_CHECKING:
    from oprack import Tensor

__all__ = [
    "attention",
    "conv2d",
    "conv3d",
    "leaky_relu",
    "max_pool3d",
    "relu",
    "relu6",
    "softmax",
    "subm_conv2d",
    "subm_conv3d",
]
Sizes = int | Sequence[int]


def relu(x: Tensor) -> Tensor:
    r"""$$\max(x, 0)$$ of the listed elements."""
    return F.sparse_relu(x)


def relu6(x: Tensor) -> Tensor:
    r"""$$\min(\max(x, 0), 6)$$ of the listed elements."""
    return F.sparse_relu6(x)


def leaky_relu(x: Tensor, negative_slope: float = 0.01) -> Tensor:
    """$$x$$ where it is positive, else $$x$$ times the slope, of the listed elements."""
    return F.sparse_leaky_relu(x, alpha=float(negative_slope))


def softmax(x: Tensor, axis: int = -1) -> Tensor:
    """softmax over the listed elements along an axis, which of CSR is the last one."""
    return F.sparse_softmax(x, axis=axis)


def attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    sparse_mask: Tensor,
    key_padding_mask: Tensor | None = None,
    attn_mask: Tensor | None = None,
) -> Tensor:
    r"""$$\mathrm{softmax}(query\, key^T / \sqrt{d})\, value$$ over the places that a mask in CSR lists.

    query, key, value: [batch, heads, length, d]; sparse_mask: [batch * heads, length, length]; in key_padding_mask
    [batch, length] and attn_mask [length, length], 0 marks what takes no part.
    """
    return F.sparse_fused_attention(query, key, value, sparse_mask, key_padding_mask, attn_mask)


def conv3d(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Sizes = 1,
    padding: Sizes = 0,
    dilation: Sizes = 1,
    groups: int = 1,
    data_format: str = "NDHWC",
) -> Tensor:
    """Windows [kD, kH, kW, C, O] over the points of x [N, D, H, W, C], in COO with dense channels."""
    return _conv(x, weight, bias, (stride, padding, dilation), groups, data_format, subm=False)


def subm_conv3d(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Sizes = 1,
    padding: Sizes = 0,
    dilation: Sizes = 1,
    groups: int = 1,
    data_format: str = "NDHWC",
    key: str | None = None,
) -> Tensor:
    """conv3d whose result has the points of x; windows lie around them, so stride and padding have no say."""
    return _conv(x, weight, bias, (stride, padding, dilation), groups, data_format, subm=True, key=key)


def conv2d(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Sizes = 1,
    padding: Sizes = 0,
    dilation: Sizes = 1,
    groups: int = 1,
    data_format: str = "NHWC",
) -> Tensor:
    """Windows [kH, kW, C, O] over the points of x [N, H, W, C], in COO with dense channels."""
    return _conv(x, weight, bias, (stride, padding, dilation), groups, data_format, subm=False)


def subm_conv2d(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Sizes = 1,
    padding: Sizes = 0,
    dilation: Sizes = 1,
    groups: int = 1,
    data_format: str = "NHWC",
    key: str | None = None,
) -> Tensor:
    """conv2d whose result has the points of x; windows lie around them, so stride and padding have no say."""
    return _conv(x, weight, bias, (stride, padding, dilation), groups, data_format, subm=True, key=key)


def max_pool3d(
    x: Tensor,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    padding: Sizes = 0,
    ceil_mode: bool = False,
    data_format: str = "NDHWC",
) -> Tensor:
    """The largest listed point of each window, for each channel; windows without one are not listed."""
    _require_last(data_format, "NDHWC")
    if ceil_mode:
        raise InvalidArgumentError("max_pool3d: ceil_mode is True; expected False: windows lie inside x alone")
    sizes = per_dim(kernel_size, 3, "kernel_size")
    steps = sizes if stride is None else per_dim(stride, 3, "stride")
    return F.sparse_maxpool(
        x, kernel_sizes=sizes, paddings=per_dim(padding, 3, "padding"), dilations=[1, 1, 1], strides=steps
    )


def per_dim(size: Sizes, count: int, name: str) -> list[int]:
    """One number for each dim of space."""
    sizes = [size] * count if isinstance(size, int) else list(size)
    if len(sizes) != count or not all(isinstance(s, int) for s in sizes):
        raise InvalidArgumentError(f"{name} is {size!r}; expected a number, or {count} of them")
    return sizes


def _require_last(data_format: str, expected: str) -> None:
    if data_format != expected:
        raise InvalidArgumentError(f"data_format is {data_format!r}; expected {expected!r}: channels are the dense dim")


def _conv(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    windows: tuple[Sizes, Sizes, Sizes],
    groups: int,
    data_format: str,
    *,
    subm: bool,
    key: str | None = None,
) -> Tensor:
    count = len(weight.shape) - 2
    _require_last(data_format, "NDHWC" if count == 3 else "NHWC")
    stride, padding, dilation = (
        per_dim(size, count, name) for size, name in zip(windows, ("stride", "padding", "dilation"), strict=True)
    )
    out = F.sparse_conv3d(
        x,
        weight,
        paddings=padding,
        dilations=dilation,
        strides=stride,
        groups=groups,
        subm=subm,
        key=key or "",
    )
    return out if bias is None else F.sparse_add(out, bias)
