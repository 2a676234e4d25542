"""onednn_winograd_conv2d: gather tiles, transform them, multiply by the filter, transform back, put in place.

All transforms are products with small matrices; all moves are reorders between strides.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from oprack.kernel import Array, KernelContext, KernelSpecialization, kernel
from oprack.types import FLOATS
from oprack_nn.kernels.with_post_ops import after
from oprack_nn.ops.post_ops import RESIDUAL, encode

from oprack_onednn.c.runner import RUNNER
from oprack_onednn.chain.descs import primitive_desc, reorder_desc
from oprack_onednn.chain.memory import channels_last_desc, image_desc
from oprack_onednn.chain.native_steps import NativeStep
from oprack_onednn.chain.parameters import Weights, is_constant
from oprack_onednn.chain.primitive_chain import PrimitiveChain
from oprack_onednn.chain.thread import THREAD
from oprack_onednn.dnnl import _c
from oprack_onednn.dnnl.layout import NotServedError, contiguous_strides
from oprack_onednn.dnnl.library import LIBRARY
from oprack_onednn.dnnl.objects import Attributes, Memory, MemoryDesc
from oprack_onednn.kernels._steps import as_post_ops
from oprack_onednn.kernels.declare import onednn_kernel
from oprack_onednn.ops.winograd_conv2d import RESULTS, TILE, matrices
from oprack_onednn.stretch.callsite import ShapedPrimitive, attempt, call_site

if TYPE_CHECKING:
    from oprack_onednn.chain.primitive_chain import PrimitiveChain
    from oprack_onednn.dnnl.objects import Memory, PrimitiveDesc
    from oprack_onednn.dnnl.operands import External


# Bytes of gathered tiles up to which a part of the images is computed at a time, so that it stays in the caches.
_PART = 1 << 21


def squares() -> tuple[Array, Array]:
    """The matrices that transform a tile's pixels [36, 36], and products into results [16, 36]."""
    back, _, forth = (np.array(m) for m in matrices())
    return np.kron(forth, forth), np.kron(back, back)


class Tiling(NamedTuple):
    """How a result is computed in tiles.

    Attributes:
        n, c, k: Images, channels and filters.
        top, left: Zeros before the images.
        height, width: Of an image.
        high, wide: Of a result.
        rows, columns: Tiles, of which the last ones may reach over the edges.
        part: Rows of tiles that are computed at a time, so that they stay in the caches.
    """

    n: int
    c: int
    k: int
    top: int
    left: int
    height: int
    width: int
    high: int
    wide: int
    rows: int
    columns: int
    part: int

    @property
    def tiles(self) -> int:
        """Tiles of a part, in all images."""
        return self.n * self.part * self.columns

    @property
    def padded(self) -> tuple[int, ...]:
        """Shape [N, H, W, C] of the images with zeros around them, as far as whole tiles reach."""
        return self.n, self.rows * RESULTS + 2, self.columns * RESULTS + 2, self.c


def tiling(x: Array, u: Array, paddings: tuple[int, ...]) -> Tiling:
    """The tiles for images `x` and a transformed filter `u`. Raises NotServedError."""
    n, c, h, w = x.shape
    top, bottom, left, right = paddings
    high, wide = h + top + bottom - 2, w + left + right - 2
    if 0 in x.shape or min(high, wide, top, left) < 0 or not high or not wide or not u.flags.c_contiguous:
        raise NotServedError("an empty tensor, or a filter that is a view")
    rows, columns = -(-high // RESULTS), -(-wide // RESULTS)
    row_bytes = 4 * TILE * TILE * n * columns * c
    # The largest part that stays in the caches and divides the rows, so that all parts have one shape.
    part = next(r for r in range(rows, 0, -1) if rows % r == 0 and (r == 1 or r * row_bytes <= _PART))
    return Tiling(n, c, u.shape[2], top, left, h, w, high, wide, rows, columns, part)


_RELU = encode("relu", [])

# What one core does in a nanosecond: products and sums, and bytes of weights that are read past its caches; what a tile
# of 16 channels takes to be transformed there and back, and what the two steps more that there are take.
_OPERATIONS, _BYTES, _CACHE = 115.0, 40.0, 1 << 20
_FORTH, _BACK, _STEPS, _STEP = 65.0, 50.0, 8000.0, 1000.0
# Channels of a vector, of which there have to be as many.
_LANES = 16
# Channels from which on it does not count that the last vector is not full.
_MANY = 64
# By how much it has to be faster: the second thread gains less where there is less to do.
_WORTH = 0.65


def pays(n: int, c: int, k: int, high: int, wide: int) -> bool:
    """Whether convolutions of n images with c channels to results [k, high, wide] are faster so, by these figures."""
    if any(channels % _LANES and channels < _MANY for channels in (c, k)):
        return False
    tiles = n * -(-high // RESULTS) * -(-wide // RESULTS)
    vectors_in, vectors_out = -(-c // _LANES), -(-k // _LANES)
    weights = 4 * TILE * TILE * c * k

    def nanoseconds(operations: float, weights: float) -> float:
        return 2 * operations / _OPERATIONS + (weights / _BYTES if weights > _CACHE else 0)

    own = nanoseconds(tiles * c * _LANES * vectors_out * TILE * TILE, weights) + _STEPS
    own += tiles * (vectors_in * _FORTH + vectors_out * _BACK)
    direct = 2 * 9 * n * high * wide * c * k / _OPERATIONS + _STEP
    return own < _WORTH * direct


class NativeTransforms:
    """Both transforms of tiles, with what follows them. plane: rows of each of the 36 matrices."""

    def __init__(self, tiling: Tiling, post_ops: tuple[str, ...]) -> None:
        self._tiling, self._post_ops = tiling, post_ops
        # an odd number: matrices whose distances are powers of 2 would share few lines of the caches
        self.plane = tiling.tiles | 1

    @staticmethod
    def serves(channels: int, post_ops: tuple[str, ...]) -> bool:
        """Whether the library is there for this CPU, has a vector of channels, and does what follows."""
        library = RUNNER.library
        if library is None or channels < _LANES or not library.oprack_winograd_serves():
            return False
        others = [p for p in post_ops if p != RESIDUAL]
        return all(p == _RELU for p in others) and len(post_ops) - len(others) < 2

    def add_forth(self, chain: PrimitiveChain, images: Memory, tiles: Memory, first: int) -> None:
        """Append the transform of tiles from row `first` on."""
        t = self._tiling
        shape = t.n, t.c, t.height, t.width, t.top, t.left
        settings = (*shape, first, t.part, t.columns, self.plane, 0, 0, 0)
        chain.add(NativeStep("oprack_winograd_forth", settings), {_c.SRC: images, _c.DST: tiles})

    def add_back(
        self,
        chain: PrimitiveChain,
        products: Memory,
        bias: External | None,
        added: Memory | None,
        results: Memory,
        first: int,
    ) -> None:
        """Append the transform of products for tiles from row `first` on into results."""
        t, post_ops = self._tiling, self._post_ops
        before, after = 0, bool(post_ops)
        if RESIDUAL in post_ops:
            at = post_ops.index(RESIDUAL)
            before, after = 1 + (at > 0), at + 1 < len(post_ops)
        shape = t.n, t.k, t.high, t.wide, 0, 0
        settings = (*shape, first, t.part, t.columns, self.plane, int(bias is not None), before, int(after))
        memory = {_c.SRC: products}
        if bias is not None:
            memory[_c.BIAS] = bias
        if added is not None:
            memory[_c.SRC_1] = added
        chain.add(NativeStep("oprack_winograd_back", settings), memory | {_c.DST: results})


_ZERO = np.zeros(1, np.float32)


class WinogradPrimitive(ShapedPrimitive):
    """The chain for one shape; `build` makes it."""

    def __init__(self, tiling: Tiling) -> None:
        self.tiling, self.chain, self.weights = tiling, PrimitiveChain(), {}
        self.shape = (tiling.n, tiling.k, tiling.high, tiling.wide)

    def append_native_steps(
        self, x: Array, u: Array, bias: Array | None, residual: Array | None, post_ops: tuple[str, ...]
    ) -> None:
        """Append the steps of each part, whose transforms are those of the compiled library."""
        t, chain, strided = self.tiling, self.chain, MemoryDesc.strided
        transforms = NativeTransforms(t, post_ops)
        pixels, results = (strided((TILE * TILE, transforms.plane, channels)) for channels in (t.c, t.k))
        source = self._channels_last(chain.input(image_desc(x)), x.shape)
        multiply, weights = self._multiply(pixels, results, is_constant(u))
        row = None if bias is None else chain.input(strided((t.k,)))
        added = None
        if residual is not None:
            added = self._channels_last(chain.input(image_desc(residual)), residual.shape)
        target = chain.output(channels_last_desc(self.shape))
        moved, products = chain.temporary(pixels), chain.temporary(results)
        for first in range(0, t.rows, t.part):
            transforms.add_forth(chain, source, moved, first)
            chain.add(multiply, {_c.SRC: moved, _c.WEIGHTS: weights, _c.DST: products})
            transforms.add_back(chain, products, row, added, target, first)

    def _channels_last(self, given: External, shape: tuple[int, ...]) -> Memory:
        wanted = channels_last_desc(shape)
        return given if given.desc == wanted else self.chain.reorder(given, wanted)

    def append_steps(
        self, x: Array, u: Array, bias: Array | None, residual: Array | None, post_ops: tuple[str, ...]
    ) -> None:
        """Append all primitives: gather, transform, multiply and transform back part by part, then add the residual."""
        t, chain, strided = self.tiling, self.chain, MemoryDesc.strided
        constant = is_constant(u) and (bias is None or is_constant(bias))
        pixels, results = strided((TILE * TILE, t.tiles, t.c)), strided((TILE * TILE, t.tiles, t.k))
        source = chain.input(image_desc(x))
        multiply, weights = self._multiply(pixels, results, constant)
        bias_row = self._bias(bias, constant, t.tiles, t.k)
        added = None if residual is None else chain.input(image_desc(residual))
        target = chain.output(channels_last_desc(self.shape))
        padded = self._pad(source)
        forth, back = (m.astype(np.float32) for m in squares())
        gathered, moved = chain.temporary(pixels), chain.temporary(pixels)
        products, finished = chain.temporary(results), chain.temporary(strided((RESULTS * RESULTS, t.tiles * t.k)))
        transform = self._transform(forth, gathered, moved, t.tiles * t.c)
        # a residual is added to all results at once, with what follows it
        whole = post_ops.index(RESIDUAL) if residual is not None else len(post_ops)
        finish = self._transform(back, products, finished, t.tiles * t.k, bias_row, as_post_ops(post_ops[:whole])[0])
        for first in range(0, t.rows, t.part):
            self._gather(padded, gathered, first)
            chain.add(*transform)
            chain.add(multiply, {_c.SRC: moved, _c.WEIGHTS: weights, _c.DST: products})
            chain.add(*finish)
            self._place(finished, target, first, t.part, t.columns)
        if added is not None:
            self._add_residual(added, target, post_ops[whole + 1 :])

    def _multiply(self, pixels: MemoryDesc, results: MemoryDesc, constant: bool) -> tuple[PrimitiveDesc, External]:
        """The products of tiles and filter, and the filter's memory, which is packed when it is constant."""
        filters = MemoryDesc.strided((TILE * TILE, self.tiling.c, self.tiling.k))
        chosen = MemoryDesc.any((TILE * TILE, self.tiling.c, self.tiling.k)) if constant else filters
        multiply = primitive_desc("matmul", LIBRARY.engine, pixels, chosen, None, results, Attributes())
        chosen = multiply.desc(_c.QUERY_WEIGHTS_MD)
        if constant:
            self.weights[1] = Weights(filters, chosen)
        return multiply, self.chain.input(chosen)

    def _gather(self, padded: Memory, gathered: Memory, first: int) -> None:
        """Append the copies of tiles from row `first` on; tiles overlap, so each is copied in four parts."""
        t, strided = self.tiling, MemoryDesc.strided
        _, tall, broad, c = t.padded
        for i, di in ((0, RESULTS), (RESULTS, TILE - RESULTS)):
            for j, dj in ((0, RESULTS), (RESULTS, TILE - RESULTS)):
                shape = (di, dj, t.n, t.part, t.columns, c)
                steps = (broad * c, c, tall * broad * c, RESULTS * broad * c, RESULTS * c, 1)
                offset = ((i + first * RESULTS) * broad + j) * c
                source = self.chain.alias(padded, strided(shape, steps), 4 * offset)
                steps = (TILE * t.tiles * c, t.tiles * c, t.part * t.columns * c, t.columns * c, c, 1)
                target = self.chain.alias(gathered, strided(shape, steps), 4 * (i * TILE + j) * t.tiles * c)
                self.chain.reorder(source, target)

    def _add_residual(self, added: Memory, target: Memory, post_ops: tuple[str, ...]) -> None:
        """Append the sum of results and residual, and what follows it."""
        chain, flat = self.chain, MemoryDesc.strided((1, math.prod(self.shape)))
        attributes, _ = as_post_ops(post_ops)
        desc = primitive_desc("binary", LIBRARY.engine, _c.BINARY_ADD, flat, flat, flat, attributes)
        sums = chain.alias(target, flat)
        if added.desc == target.desc:
            added = chain.alias(added, flat)
        else:
            added = chain.alias(chain.reorder(added, target.desc), flat)
        chain.add(desc, {_c.SRC: sums, _c.SRC_1: added, _c.DST: sums})

    def _pad(self, source: External) -> Memory:
        """Append a copy of the images with zeros around them; returns its memory."""
        tiling, padded = self.tiling, self.tiling.padded
        n, c, h, w, top, left = tiling.n, tiling.c, tiling.height, tiling.width, tiling.top, tiling.left
        _, tall, broad, _ = padded
        strided, strides = MemoryDesc.strided, contiguous_strides(padded)
        result = self.chain.temporary(strided(padded))
        inner = strided((n, c, h, w), [strides[i] for i in (0, 3, 1, 2)])
        self.chain.reorder(source, self.chain.alias(result, inner, 4 * (top * broad + left) * c))
        sides = [
            *((0, 0, top, broad), (top + h, 0, tall - top - h, broad)),
            *((top, 0, h, left), (top, left + w, h, broad - left - w)),
        ]
        for row, column, high, wide in sides:
            if high and wide:
                zeros = Memory(strided((n, high, wide, c), (0, 0, 0, 0)), _ZERO)
                side = strided((n, high, wide, c), strides)
                self.chain.reorder(zeros, self.chain.alias(result, side, 4 * (row * broad + column) * c))
        return result

    def _bias(self, bias: Array | None, constant: bool, tiles: int, k: int) -> External | Memory | None:
        """Memory of the bias once per tile; None without one."""
        if bias is None:
            return None
        once, every = MemoryDesc.strided((1, tiles, k), (0, 0, 1)), MemoryDesc.strided((1, tiles, k))
        row = MemoryDesc.strided((1, tiles * k))
        if constant:
            self.weights[2] = Weights(once, every)
            return self.chain.input(row)
        return self.chain.alias(self.chain.reorder(self.chain.input(once), every), row)

    def _transform(
        self,
        matrix: Array,
        given: Memory,
        result: Memory,
        width: int,
        bias: External | Memory | None = None,
        attributes: Attributes | None = None,
    ) -> tuple[PrimitiveDesc, dict[int, External | Memory]]:
        """A matrix [m, 36] times memory [36, width]: a step of the chain."""
        m, strided = len(matrix), MemoryDesc.strided
        left, right, product = strided(matrix.shape), strided((TILE * TILE, width)), strided((m, width))
        row = None if bias is None else bias.desc
        desc = primitive_desc("matmul", LIBRARY.engine, left, right, row, product, attributes or Attributes())
        alias = self.chain.alias
        arguments = {
            _c.SRC: Memory(left, matrix),
            _c.WEIGHTS: alias(given, right),
            _c.DST: alias(result, product),
        }
        return desc, arguments if bias is None else arguments | {_c.BIAS: bias}

    def _place(self, finished: Memory, target: External, first: int, part: int, columns: int) -> None:
        """Append the copies of tiles of results to where they belong; the last tiles may reach over the edges."""
        n, k, high, wide = self.shape
        tiles = n * part * columns

        def ranges(size: int, begin: int, count: int) -> list[tuple[int, int, int]]:
            """(tile, tiles, results per tile) of whole tiles, then of the one at the edge."""
            whole = min(count, size // RESULTS - begin)
            found = [(0, whole, RESULTS)] if whole > 0 else []
            rest = size - RESULTS * (begin + whole)
            return [*found, (whole, 1, rest)] if whole < count and rest > 0 else found

        for row, some_rows, di in ranges(high, first, part):
            for column, some_columns, dj in ranges(wide, 0, columns):
                shape = (di, dj, n, some_rows, some_columns, k)
                steps = (RESULTS * tiles * k, tiles * k, part * columns * k, columns * k, k, 1)
                offset = (row * columns + column) * k
                source = self.chain.alias(finished, MemoryDesc.strided(shape, steps), 4 * offset)
                steps = (wide * k, k, high * wide * k, RESULTS * wide * k, RESULTS * k, 1)
                offset = ((first + row) * RESULTS * wide + column * RESULTS) * k
                place = self.chain.alias(target, MemoryDesc.strided(shape, steps), 4 * offset)
                self.chain.add(reorder_desc(source.desc, place.desc), {_c.SRC: source, _c.DST: place})


def build(
    x: Array, u: Array, bias: Array | None, residual: Array | None, paddings: tuple[int, ...], post_ops: tuple[str, ...]
) -> WinogradPrimitive:
    """The chain for inputs of these shapes. Raises NotServedError."""
    shaped = WinogradPrimitive(tiling(x, u, paddings))
    if (residual is not None) != (RESIDUAL in post_ops):
        raise NotServedError("a residual that no post-op adds, or the other way round")
    if residual is not None and residual.shape != shaped.shape:
        raise NotServedError(f"the residual has shape {residual.shape}; expected that of the result, {shaped.shape}")
    is_native = NativeTransforms.serves(min(u.shape[1:]), post_ops)
    append = shaped.append_native_steps if is_native else shaped.append_steps
    append(x, u, bias, residual, post_ops)
    return shaped


def find_primitive(
    attrs: Mapping[str, Sequence[int | str]],
    x: Array,
    u: Array,
    bias: Array | None = None,
    residual: Array | None = None,
) -> WinogradPrimitive | None:
    """The primitive for the op's inputs; None when there is none."""
    if not u.flags.c_contiguous or (bias is not None and (bias.ndim != 1 or not bias.flags.c_contiguous)):
        return None
    constant = is_constant(u) and (bias is None or is_constant(bias))
    paddings, post_ops = tuple(attrs["paddings"]), tuple(attrs["post_ops"])
    second = None if residual is None else (residual.shape, residual.strides)
    key = ("winograd", x.shape, x.strides, u.shape, second, constant, bias is not None, paddings, post_ops)
    return THREAD.primitive(key, build, x, u, bias, residual, paddings, post_ops)


def _specialize(call: KernelSpecialization) -> Callable[..., Any]:
    return call_site(partial(find_primitive, call.attrs), (0, 3) if call.has_input("Residual") else (0,))


@onednn_kernel("onednn_winograd_conv2d", specialize=_specialize)
def winograd(
    Input: Array, Filter: Array, Bias: Array | None = None, Residual: Array | None = None, *, ctx: KernelContext
) -> Array:
    return attempt(partial(find_primitive, ctx.attrs), Input, Filter, Bias, Residual)


@kernel("onednn_winograd_conv2d", place="cpu", dtypes=FLOATS)
def reference_winograd(
    Input: Array, Filter: Array, Bias: Array | None = None, Residual: Array | None = None, *, ctx: KernelContext
) -> Array:
    return by_steps(Input, Filter, Bias, Residual, ctx.attrs, ctx)


def by_steps(
    x: Array,
    u: Array,
    bias: Array | None,
    residual: Array | None,
    attrs: Mapping[str, Any],
    ctx: KernelContext,
) -> Array:
    """The same in NumPy."""
    n, c, h, w = x.shape
    k = u.shape[2]
    top, bottom, left, right = attrs["paddings"]
    high, wide = h + top + bottom - 2, w + left + right - 2
    rows, columns = -(-high // RESULTS), -(-wide // RESULTS)
    padded = np.zeros((n, rows * RESULTS + 2, columns * RESULTS + 2, c), x.dtype)
    padded[:, top : top + h, left : left + w] = x.transpose(0, 2, 3, 1)
    forth, back = (m.astype(x.dtype) for m in squares())
    tiles = np.lib.stride_tricks.sliding_window_view(padded, (TILE, TILE), (1, 2))[:, ::RESULTS, ::RESULTS]
    tiles = tiles.transpose(4, 5, 0, 1, 2, 3).reshape(TILE * TILE, -1)
    products = (forth @ tiles).reshape(TILE * TILE, -1, c) @ u
    y = (back @ products.reshape(TILE * TILE, -1)).reshape(RESULTS, RESULTS, n, rows, columns, k)
    y = y.transpose(2, 5, 3, 0, 4, 1).reshape(n, k, rows * RESULTS, columns * RESULTS)[:, :, :high, :wide]
    return after(np.ascontiguousarray(y), 1, bias, residual, attrs["post_ops"], ctx)
