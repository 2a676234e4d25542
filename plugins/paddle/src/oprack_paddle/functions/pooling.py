"""Pooling, its inverse, and what moves elements between channels and space."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import oprack
import oprack.nn.functional as NF
from oprack import functional as F

from oprack_paddle.functions._tools import plain

Tensor = Any


def _list(value: Any, n: int) -> list[int]:
    value = plain(value)
    return [value] * n if isinstance(value, int) else list(value)


def avg_pool2d(
    x: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, ceil_mode: bool = False, exclusive: bool = True,
    divisor_override: Any = None, data_format: str = "NCHW", name: Any = None,
) -> Tensor:  # fmt: skip
    """The means of windows."""
    return _avg_pool(2, x, (kernel_size, stride, padding, ceil_mode, exclusive), divisor_override, data_format)


def avg_pool3d(
    x: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, ceil_mode: bool = False, exclusive: bool = True,
    divisor_override: Any = None, data_format: str = "NCDHW", name: Any = None,
) -> Tensor:  # fmt: skip
    """The means of windows."""
    return _avg_pool(3, x, (kernel_size, stride, padding, ceil_mode, exclusive), divisor_override, data_format)


def _avg_pool(n: int, x: Tensor, args: tuple[Any, ...], divisor: Any, layout: str) -> Tensor:
    """Windows of n dims; with a divisor, their sums divided by it."""
    kernel, stride, padding, ceil_mode, exclusive = args
    function, exclusive = getattr(NF, f"avg_pool{n}d"), exclusive and divisor is None
    found = function(x, kernel, stride, spatial(padding, layout), ceil_mode, exclusive, layout)
    return found if divisor is None else found * (math.prod(_list(kernel, n)) / divisor)


def spatial(padding: Any, data_format: str) -> Any:
    """A padding by pairs for all dims, as that of the dims of space: [before, after, before, after ...]."""
    if not isinstance(padding, list | tuple) or not padding or not isinstance(padding[0], list | tuple):
        return padding
    pairs = padding[1:-1] if data_format[-1] == "C" else padding[2:]
    return [int(p) for pair in pairs for p in pair]


def _of_nothing(x: Tensor, n: int, kernel: Any, stride: Any, padding: Any, return_mask: bool) -> Any:
    """Windows of a tensor without elements."""
    kernel, stride = _list(kernel, n), _list(kernel if stride is None else stride, n)
    if padding == "SAME":
        size = [-(-i // s) for i, s in zip(x.shape[2:], stride, strict=True)]
    else:
        pads = [0] * n if isinstance(padding, str) else _list(padding, n)
        size = [max((i + 2 * p - k) // s + 1, 0) for i, p, k, s in zip(x.shape[2:], pads, kernel, stride, strict=False)]
    shape = [*x.shape[:2], *size]
    found = oprack.zeros(shape, x.dtype)
    return (found, oprack.zeros(shape, "int32")) if return_mask else found


def _max_pool(x: Tensor, n: int, args: tuple[Any, ...], return_mask: bool, ceil_mode: bool, layout: str) -> Any:
    """Windows of n dims, with the places of their largest elements where they are asked for."""
    function = getattr(NF, f"max_pool{n}d")
    kernel, stride, padding = args
    padding = spatial(padding, layout)
    ceil_mode = ceil_mode and not return_mask  # as Paddle, whose op with places has no such attribute
    if not x.size:
        return _of_nothing(x, n, kernel, stride, padding, return_mask)
    plain_padding = not isinstance(padding, str) and not any(isinstance(p, list | tuple) for p in _list(padding, n))
    if not return_mask or (plain_padding and not ceil_mode and x.size):
        return function(x, kernel, stride, padding, return_mask, ceil_mode, layout)
    found = function(x, kernel, stride, padding, False, ceil_mode, layout)
    return found, _places(x, found, n, _list(kernel, n), _list(kernel if stride is None else stride, n), padding)


def _places(x: Tensor, found: Tensor, n: int, kernel: list[int], stride: list[int], padding: Any) -> Tensor:
    """Where the largest elements lie, as one number within their image; of windows that are cut at the end as well."""
    host, out = np.asarray(x), tuple(found.shape[2:])
    space = host.shape[2:]
    if isinstance(padding, str):
        padding = [max((o - 1) * s + k - i, 0) // 2 if padding == "SAME" else 0
                   for o, s, k, i in zip(out, stride, kernel, space, strict=True)]  # fmt: skip
    before = [p if isinstance(p, int) else p[0] for p in _list(padding, n)][-n:]
    places = np.zeros(found.shape, np.int32)
    numbers = np.arange(int(np.prod(space))).reshape(space)
    for at in np.ndindex(*out):
        box = tuple(
            slice(max(a * s - b, 0), min(a * s - b + k, size))
            for a, s, b, k, size in zip(at, stride, before, kernel, space, strict=True)
        )
        window = host[(slice(None), slice(None), *box)].reshape(*host.shape[:2], -1)
        if window.size:
            places[(slice(None), slice(None), *at)] = numbers[box].ravel()[window.argmax(-1)]
    return oprack.to_tensor(places)


def max_pool1d(
    x: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    return_mask: bool = False,
    ceil_mode: bool = False,
    name: Any = None,
) -> Any:
    """The largest elements of windows."""
    if not return_mask:
        return NF.max_pool1d(x, kernel_size, stride, padding, False, ceil_mode)
    if isinstance(padding, list | tuple) and padding and isinstance(padding[0], int):
        padding = padding[0]
    wide = [_list(v, 1)[0] for v in (kernel_size, kernel_size if stride is None else stride)]
    pad = padding if isinstance(padding, str) else [0, padding]
    found, places = max_pool2d(x.unsqueeze(2), [1, wide[0]], [1, wide[1]], pad, True, ceil_mode)
    return found.squeeze(2), places.squeeze(2)


def max_pool2d(
    x: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, return_mask: bool = False,
    ceil_mode: bool = False,
    data_format: str = "NCHW", name: Any = None,
) -> Any:  # fmt: skip
    """The largest elements of windows."""
    return _max_pool(x, 2, (kernel_size, stride, padding), return_mask, ceil_mode, data_format)


def max_pool3d(
    x: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, return_mask: bool = False,
    ceil_mode: bool = False,
    data_format: str = "NCDHW", name: Any = None,
) -> Any:  # fmt: skip
    """The largest elements of windows."""
    return _max_pool(x, 3, (kernel_size, stride, padding), return_mask, ceil_mode, data_format)


def _unpool_size(x: Tensor, n: int, kernel: list[int], stride: list[int], padding: list[int], asked: Any) -> list[int]:
    if asked is not None:
        return _list(asked, n)[-n:]
    return [(s - 1) * st - 2 * p + k for s, st, p, k in zip(x.shape[2:], stride, padding, kernel, strict=True)]


def _max_unpool(x: Tensor, indices: Tensor, n: int, kernel_size: Any, stride: Any, padding: Any, asked: Any) -> Tensor:
    """Zeros, with each element where it was before it was pooled."""
    kernel, stride = _list(kernel_size, n), _list(kernel_size if stride is None else stride, n)
    size = _unpool_size(x, n, kernel, stride, _list(padding, n), asked)
    flat = oprack.zeros([*x.shape[:2], int(np.prod(size))], dtype=x.dtype)
    places = indices.reshape([*x.shape[:2], -1]).astype("int64")
    found = F.put_along_axis(flat, places, x.reshape([*x.shape[:2], -1]), Axis=2, Reduce="assign")
    return found.reshape([*x.shape[:2], *size])


def max_unpool1d(
    x: Tensor, indices: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, data_format: str = "NCL",
    output_size: Any = None, name: Any = None,
) -> Tensor:  # fmt: skip
    """The inverse of max_pool1d with zeros between."""
    return _max_unpool(x, indices, 1, kernel_size, stride, padding, output_size)


def max_unpool2d(
    x: Tensor, indices: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, data_format: str = "NCHW",
    output_size: Any = None, name: Any = None,
) -> Tensor:  # fmt: skip
    """The inverse of max_pool2d with zeros between."""
    return _max_unpool(x, indices, 2, kernel_size, stride, padding, output_size)


def max_unpool3d(
    x: Tensor, indices: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, data_format: str = "NCDHW",
    output_size: Any = None, name: Any = None,
) -> Tensor:  # fmt: skip
    """The inverse of max_pool3d with zeros between."""
    return _max_unpool(x, indices, 3, kernel_size, stride, padding, output_size)


def _adaptive_max(x: Tensor, n: int, output_size: Any, return_mask: bool) -> Any:
    size = [s if o is None else int(o) for s, o in zip(x.shape[2:], _list(output_size, n), strict=True)]
    shape = [*x.shape[:2], *size]
    if x.size:
        wide = F.unsqueeze(x, axes=[2]) if n == 1 else x  # the op of two dims does for sequences
        op = F.max_pool3d_with_index if n == 3 else F.max_pool2d_with_index
        found, places = op(wide, ksize=[1, *size] if n == 1 else size, adaptive=True)
        found, places = (found.reshape(shape), places.reshape(shape)) if n == 1 else (found, places)
        return (found, places) if return_mask else found
    found = oprack.full(shape, 0.0, dtype=x.dtype)
    return (found, oprack.zeros(shape, "int32")) if return_mask else found


def adaptive_max_pool1d(x: Tensor, output_size: Any, return_mask: bool = False, name: Any = None) -> Any:
    """The largest elements of so many parts."""
    return _adaptive_max(x, 1, output_size, return_mask)


def adaptive_max_pool2d(x: Tensor, output_size: Any, return_mask: bool = False, name: Any = None) -> Any:
    """The largest elements of so many parts."""
    return _adaptive_max(x, 2, output_size, return_mask)


def adaptive_max_pool3d(x: Tensor, output_size: Any, return_mask: bool = False, name: Any = None) -> Any:
    """The largest elements of so many parts."""
    return _adaptive_max(x, 3, output_size, return_mask)


def lp_pool1d(
    x: Tensor, norm_type: float, kernel_size: Any, stride: Any = None, padding: Any = 0, ceil_mode: bool = False,
    data_format: str = "NCL", name: Any = None,
) -> Tensor:  # fmt: skip
    """The p-norms of windows."""
    last = data_format == "NLC"
    wide = x.unsqueeze(1) if last else x.unsqueeze(2)
    kernel = [1, _list(kernel_size, 1)[0]]
    step = kernel if stride is None else [1, _list(stride, 1)[0]]
    pad = padding if isinstance(padding, str) else [0, _list(padding, 1)[0]]
    found = lp_pool2d(wide, norm_type, kernel, step, pad, ceil_mode, "NHWC" if last else "NCHW")
    return found.squeeze(1 if last else 2)


def lp_pool2d(
    x: Tensor, norm_type: float, kernel_size: Any, stride: Any = None, padding: Any = 0, ceil_mode: bool = False,
    data_format: str = "NCHW", name: Any = None,
) -> Tensor:  # fmt: skip
    """The p-norms of windows."""
    p, size = float(norm_type), _list(kernel_size, 2)
    if p == float("inf"):
        return max_pool2d(x, kernel_size, stride, padding, False, ceil_mode, data_format)
    means = NF.avg_pool2d(x**p, kernel_size, stride, padding, ceil_mode, False, data_format)
    return (means * float(size[0] * size[1])) ** (1.0 / p)


def _fractions(size: int, parts: int, u: float, kernel: int | None) -> list[tuple[int, int]]:
    """The parts of a dim, whose sizes are drawn by one number between 0 and 1."""
    alpha = size / parts if kernel is None else (size - kernel) / (parts - 1) if parts > 1 else 0.0
    if kernel is not None:
        starts = [int((i + u) * alpha) - int(u * alpha) for i in range(parts - 1)] + [size - kernel]
        return [(s, s + kernel) for s in starts]
    base = size // parts
    u_max1, u_max2 = (base + 2) / alpha - 1, (size + 1 - base) / alpha - (parts - 1)
    u = u * min(u_max1, u_max2)
    edges = [int((i + u) * alpha) - int(u * alpha) for i in range(parts + 1)]
    edges[-1] = min(edges[-1], size)
    return [(edges[i], edges[i + 1]) for i in range(parts)]


def _fractional(x: Tensor, n: int, output_size: Any, kernel_size: Any, random_u: Any, return_mask: bool) -> Any:
    from oprack_paddle.state import generator

    u = float(generator().random()) if random_u is None else float(random_u)
    parts = [s if o is None else o for s, o in zip(x.shape[2:], _list(output_size, n), strict=True)]
    kernels = [None] * n if kernel_size is None else _list(kernel_size, n)
    boxes = [_fractions(s, p, u, k) for s, p, k in zip(x.shape[2:], parts, kernels, strict=True)]
    host = np.asarray(x)
    numbers = np.arange(int(np.prod(host.shape[2:]))).reshape(host.shape[2:])
    places = np.zeros((*host.shape[:2], *parts), np.int64)
    for at in np.ndindex(*parts):
        box = tuple(slice(*boxes[d][i]) for d, i in enumerate(at))
        window = host[(slice(None), slice(None), *box)].reshape(*host.shape[:2], -1)
        places[(slice(None), slice(None), *at)] = numbers[box].ravel()[window.argmax(-1)]
    index = oprack.to_tensor(places.reshape(*host.shape[:2], -1))
    found = F.take_along_axis(x.reshape([*x.shape[:2], -1]), index, Axis=2).reshape(list(places.shape))
    return (found, oprack.to_tensor(places.astype(np.int32))) if return_mask else found


def fractional_max_pool2d(
    x: Tensor,
    output_size: Any,
    kernel_size: Any = None,
    random_u: Any = None,
    return_mask: bool = False,
    name: Any = None,
) -> Any:
    """The largest elements of parts whose sizes are random."""
    return _fractional(x, 2, output_size, kernel_size, random_u, return_mask)


def fractional_max_pool3d(
    x: Tensor,
    output_size: Any,
    kernel_size: Any = None,
    random_u: Any = None,
    return_mask: bool = False,
    name: Any = None,
) -> Any:
    """The largest elements of parts whose sizes are random."""
    return _fractional(x, 3, output_size, kernel_size, random_u, return_mask)


def _channels_first(function: Any, x: Tensor, channels_last: bool, *settings: Any) -> Tensor:
    """A function of channels that come first, of ones that come last."""
    if not channels_last:
        return function(x, *settings)
    last = x.ndim - 1
    found = function(F.transpose(x, axis=[0, last, *range(1, last)]), *settings)
    return F.transpose(found, axis=[0, *range(2, last + 1), 1])


def adaptive_avg_pool2d(x: Tensor, output_size: Any, data_format: str = "NCHW", name: Any = None) -> Tensor:
    """The means of so many parts."""
    return _channels_first(NF.adaptive_avg_pool2d, x, data_format == "NHWC", output_size)


def adaptive_avg_pool3d(x: Tensor, output_size: Any, data_format: str = "NCDHW", name: Any = None) -> Tensor:
    """The means of so many parts."""
    return _channels_first(NF.adaptive_avg_pool3d, x, data_format == "NDHWC", output_size)


def dropout2d(x: Tensor, p: float = 0.5, training: bool = True, data_format: str = "NCHW", name: Any = None) -> Tensor:
    """Zeros in whole channels, while training."""
    return NF.dropout(x, p, axis=[0, 3] if data_format == "NHWC" else [0, 1], training=training)


def dropout3d(x: Tensor, p: float = 0.5, training: bool = True, data_format: str = "NCDHW", name: Any = None) -> Tensor:
    """Zeros in whole channels, while training."""
    return NF.dropout(x, p, axis=[0, 4] if data_format == "NDHWC" else [0, 1], training=training)
