"""Convolutions, alone and with what follows them: NumPy copies what windows see, and passes over results again."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, partial
from typing import Any

import numpy as np
from oprack.kernel import Array, KernelContext, KernelSpecialization, attr, decline, kernel
from oprack.python.records import dataclass
from oprack_nn.kernels.conv import Geometry
from oprack_nn.kernels.with_post_ops import after
from oprack_nn.ops.post_ops import RESIDUAL, decode
from oprack_nn.ops.with_post_ops import WINDOW

from oprack_numba.library import LIBRARY, usable

_NUMBERS = 1536
"""Numbers of a result that four filters make at a time: with what they read they stay in the first cache."""
_FEW = 256
"""Positions from which on a convolution that adds up channels is worth the sorting of its weights."""
_PART, _LEAST_PART = 1 << 17, 128
"""Numbers that a part of a product has, about, and its columns at least: it stays in the second cache."""
_NONE = np.zeros(0, np.float32)
_CODES, _CODE_NUMBERS = np.zeros(0, np.int64), np.zeros((0, 3), np.float32)
Finish = tuple[Array, Array, Array, Array]
"""What follows a convolution: the bias, the residual as one row, and the post-ops as codes and numbers."""
_PLAIN: Finish = (_NONE, _NONE, _CODES, _CODE_NUMBERS)


@dataclass(frozen=True)
class Form:
    """How a convolution of certain shapes is computed.

    Attributes:
        run: Takes images, filters and what follows; returns the result.
        out: Rows and columns of the result.
        pad: Rows above and columns to the left that are zero.
        stride: Of rows and columns.
        size: Rows and columns of what is left of a padded plane by each remainder of the strides.
        offsets: Where each tap of each channel reads in a padded image, in the order of a filter's weights.
        rows: Rows of the result that are made at a time.
    """

    run: Callable[[Form, Array, Array, Finish], Array]
    out: tuple[int, ...]
    pad: tuple[int, ...]
    stride: tuple[int, ...]
    size: tuple[int, int]
    offsets: Array
    rows: int


@lru_cache(maxsize=2048)
def form_of(shape: tuple[int, ...], filters: tuple[int, ...], window: tuple[Any, ...]) -> Form | str:
    """The form for images and filters of these shapes; a text that says why there is none.

    Args:
        shape: [N, C, height, width].
        filters: [K, C / groups, height, width].
        window: As `window_of` gives it.
    """
    (n, c, *spatial), attrs = shape, dict(zip(WINDOW, window, strict=True))
    geo = Geometry.of(spatial, filters, attrs)
    # the loops trust that there is a tap for each weight
    if not math.prod(filters) or not n or filters[1] * geo.groups != c or any(min(pad) < 0 for pad in geo.pads):
        return "an empty filter or one for other channels, no images, or paddings that crop"
    sizes = zip(spatial, geo.pads, geo.dilations, geo.ksize, geo.strides, strict=True)
    out = tuple((s + a + b - d * (q - 1) - 1) // t + 1 for s, (a, b), d, q, t in sizes)
    if min(out) < 1:
        return "windows that are larger than the input"
    depthwise = filters[1] == 1 and filters[0] % c == 0
    if not depthwise and geo.groups != 1:
        return "groups of several channels"
    run = _depthwise if depthwise else _pointwise if geo.pointwise else _taps
    if run is _taps and math.prod(out) < _FEW:
        return "so few positions that NumPy's product is as fast"
    pad = tuple(a for a, _ in geo.pads)
    last = zip(out, geo.strides, geo.ksize, geo.dilations, strict=True)
    reach = [(o - 1) * t + (q - 1) * d + 1 for o, t, q, d in last]
    tall, wide = (-(-max(s + p, r) // t) for s, p, r, t in zip(spatial, pad, reach, geo.strides, strict=True))
    offsets = _offsets(geo, 1 if depthwise else c, tall, wide)
    return Form(run, out, pad, geo.strides, (tall, wide), offsets, max(1, round(_NUMBERS / wide)))


def _offsets(geo: Geometry, channels: int, tall: int, wide: int) -> Array:
    (kh, kw), (sh, sw), (dh, dw) = geo.ksize, geo.strides, geo.dilations
    i, j = np.arange(kh) * dh, np.arange(kw) * dw
    rows, columns = i % sh * sw * tall * wide + i // sh * wide, j % sw * tall * wide + j // sw
    planes = np.arange(channels) * (sh * sw * tall * wide)
    return (planes[:, None, None] + rows[:, None] + columns).reshape(-1)


def _depthwise(form: Form, x: Array, w: Array, finish: Finish) -> Array:
    from oprack_numba import loops  # imports numba

    (n, c, *spatial), filters = x.shape, w.shape[0]
    y = np.empty((n, filters, *form.out), np.float32)
    planes, weights = np.ascontiguousarray(x).reshape(-1, *spatial), np.ascontiguousarray(w).reshape(filters, -1)
    arrays = planes, weights, form.offsets, y.reshape(-1, *form.out)
    layout = filters // c, form.pad, form.stride, form.size

    def run(first: int, last: int) -> None:
        loops.depthwise(*arrays, first, last, *layout, *finish)

    LIBRARY.share(run, n * filters, y.size * weights.shape[1])
    return y


def _pointwise(form: Form, x: Array, w: Array, finish: Finish) -> Array:
    """A product of matrices, a part of it at a time, which what follows finds in the cache."""
    from oprack_numba import loops  # imports numba

    n, c, filters, places = x.shape[0], x.shape[1], w.shape[0], math.prod(form.out)
    weights, images = w.reshape(filters, c), x.reshape(n, c, places)
    y = np.empty((n, filters, places), np.float32)
    flat, more = y.reshape(-1), bool(finish[0].size or finish[2].size)
    parts = -(-places // max(_LEAST_PART, _PART // max(c, filters)))

    def run(first: int, last: int) -> None:
        for part in range(first, last):
            image, i = divmod(part, parts)
            begin, end = places * i // parts, places * (i + 1) // parts
            np.matmul(weights, images[image, :, begin:end], out=y[image, :, begin:end])
            if more:
                loops.add_rows(flat, image * filters * places + begin, end - begin, places, *finish, filters)

    LIBRARY.share_products(run, n * parts, y.size * c)
    return y.reshape(n, filters, *form.out)


def _taps(form: Form, x: Array, w: Array, finish: Finish) -> Array:
    from oprack_numba import loops  # imports numba

    (n, c, *spatial), filters, (sh, sw), (tall, wide) = x.shape, w.shape[0], form.stride, form.size
    planes = np.ascontiguousarray(x).reshape(-1, *spatial)
    padded = np.empty((n * c, sh, sw, tall * wide), np.float32)
    pad, rows, offsets = form.pad, form.rows, form.offsets
    LIBRARY.share(lambda first, last: loops.pad_planes(planes, padded, first, last, pad, wide), n * c, padded.size)
    fours, others = _sorted(w.reshape(filters, -1))
    y, images = np.empty((n, filters, *form.out), np.float32), padded.reshape(n, -1)

    def run(first: int, last: int) -> None:
        loops.product_of_taps(images, offsets, fours, others, y, rows, wide, first, last, *finish)

    LIBRARY.share(run, n * -(-form.out[0] // rows), y.size * w[0].size)
    return y


def _sorted(w: Array) -> tuple[Array, Array]:
    """Filters [K, taps] as `loops.product_of_taps` reads them: four filters by four taps, and the last taps."""
    filters, taps = w.shape
    if filters % 4:
        w = np.concatenate([w, np.zeros((-filters % 4, taps), w.dtype)])
    blocks, whole = w.reshape(-1, 4, taps), taps - taps % 4
    fours = blocks[..., :whole].reshape(len(blocks), 4, whole // 4, 4).transpose(0, 2, 1, 3)
    return np.ascontiguousarray(fours), np.ascontiguousarray(blocks[..., whole:].transpose(0, 2, 1))


# What follows ---------------------------------------------------------------------------------------------------------
@lru_cache(maxsize=256)
def _post_ops(texts: tuple[str, ...]) -> tuple[Array, Array, tuple[str, ...]]:
    """Codes and numbers of the post-ops that loops know, up to the first one that they do not; and the others."""
    from oprack_numba import loops  # imports numba

    found = list[tuple[Any, ...]]()
    for text in texts:
        code = _code(text, loops)
        if code is None:
            break
        found.append(code)
    numbers = np.array([[*n, 0.0, 0.0, 0.0][:3] for _, *n in found], np.float32).reshape(-1, 3)
    return np.array([code for code, *_ in found], np.int64), numbers, texts[len(found) :]


def _code(text: str, loops: Any) -> tuple[Any, ...] | None:
    """A post-op as the loops take it: its code, and its numbers; None where they do not know it."""
    if text == RESIDUAL:
        return (loops.RESIDUAL,)
    op_type, given = decode(text)
    if op_type == "scale":
        factor, bias, is_after = given
        return loops.LINEAR, factor, bias if is_after else factor * bias
    known = {
        "relu": loops.RELU,
        "relu6": loops.CLIP,
        "leaky_relu": loops.LEAKY,
        "hard_swish": loops.HARD_SWISH,
        "hard_sigmoid": loops.HARD_SIGMOID,
    }
    return (known[op_type], *given) if op_type in known else None


def _is_of(array: Array | None, shape: tuple[int, ...]) -> bool:
    """Whether an array is absent, or of a shape."""
    return array is None or array.shape == shape


def _row(array: Array | None) -> Array:
    return _NONE if array is None else np.ascontiguousarray(array).reshape(-1)


# Kernels --------------------------------------------------------------------------------------------------------------
def window_of(attrs: Mapping[str, Any]) -> tuple[Any, ...]:
    """How windows lie, by the attributes of an op, as something that can be compared."""
    return tuple(tuple(v) if isinstance(v, list) else v for v in (attrs[name] for name in WINDOW))


def _plain(window: tuple[Any, ...], x: Array, w: Array) -> Array:
    form = form_of(x.shape, w.shape, window)
    if isinstance(form, str):
        return decline(form)
    return decline("a product of matrices") if form.run is _pointwise else form.run(form, x, w, _PLAIN)


def _specialize(call: KernelSpecialization) -> Callable[..., Any]:
    return partial(_plain, window_of(call.attrs))


def plain(Input: Array, Filter: Array, *, ctx: KernelContext) -> Array:
    """A convolution alone."""
    return _plain(window_of(ctx.attrs), Input, Filter)


_FITS = usable & attr("data_format").isin("NCHW", "AnyLayout")
conv2d = kernel(
    "conv2d", dtypes={"float32"}, library="numba", when=_FITS, priority=5, may_decline=True, specialize=_specialize
)(plain)

depthwise_conv2d = kernel(
    "depthwise_conv2d",
    dtypes={"float32"},
    library="numba",
    when=_FITS,
    priority=5,
    may_decline=True,
    specialize=_specialize,
)(plain)


@kernel(
    "conv2d_post_ops",
    dtypes={"float32"},
    library="numba",
    when=usable & attr("mkldnn_data_type").isin("float32") & attr("output_data_type").isin("float32"),
    priority=5,
    may_decline=True,
)
def conv2d_post_ops(
    Input: Array,
    Filter: Array,
    Bias: Array | None = None,
    Residual: Array | None = None,
    *,
    post_ops: Sequence[str],
    ctx: KernelContext,
) -> Array:
    form = form_of(Input.shape, Filter.shape, window_of(ctx.attrs))
    if isinstance(form, str):
        return decline(form)
    out = (Input.shape[0], Filter.shape[0], *form.out)
    if not _is_of(Bias, Filter.shape[:1]) or not _is_of(Residual, out):
        return decline("a bias or a residual of another shape")  # the loops trust these, too
    codes, numbers, rest = _post_ops(tuple(post_ops))
    y = form.run(form, Input, Filter, (_row(Bias), _row(Residual), codes, numbers))
    return after(y, 1, None, Residual, rest, ctx) if rest else y


@kernel("conv2d_transpose_post_ops", dtypes={"float32"}, library="numba", when=usable, priority=5, may_decline=True)
def conv2d_transpose_post_ops(
    Input: Array,
    Filter: Array,
    Bias: Array | None = None,
    *,
    output_padding: Sequence[int],
    post_ops: Sequence[str],
    ctx: KernelContext,
) -> Array:
    (n, c, height, width), (_, k, kh, kw) = Input.shape, Filter.shape
    strides, paddings, dilations, groups, algorithm = window_of(ctx.attrs)
    beside = strides == (kh, kw) and dilations == (1, 1) and groups == 1 and not any((*paddings, *output_padding))
    if not beside or algorithm == "SAME" or not Input.size or not Filter.size or not _is_of(Bias, (k,)):
        return decline("windows that overlap or leave gaps, a bias of another shape, or nothing at all")
    from oprack_numba import loops  # imports numba

    codes, numbers, rest = _post_ops(tuple(post_ops))
    product = LIBRARY.product(Filter.reshape(c, k * kh * kw).T, Input.reshape(n, c, height * width))
    y = np.empty((n * k, height * kh, width * kw), np.float32)
    arrays, finish = (product.reshape(n * k, kh, kw, -1), y), (_row(Bias), _NONE, codes, numbers)
    LIBRARY.share(lambda first, last: loops.spread(*arrays, first, last, width, *finish), n * k, 4 * y.size)
    y = y.reshape(n, k, *y.shape[1:])
    return after(y, 1, None, None, rest, ctx) if rest else y
