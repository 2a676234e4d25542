"""onednn_conv2d_transpose_pair: two products per pixel, and one copy that puts the tiles of tiles in their places."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from oprack.kernel import Array, KernelContext, KernelSpecialization, RequiredArray, kernel
from oprack.types import FLOATS
from oprack_nn.kernels.with_post_ops import after
from oprack_nn.ops.precision import is_narrow

from oprack_onednn.chain.descs import primitive_desc
from oprack_onednn.chain.memory import channels_last_desc, image_desc
from oprack_onednn.chain.parameters import FromConstants, Weights, is_constant
from oprack_onednn.chain.primitive_chain import PrimitiveChain
from oprack_onednn.chain.thread import THREAD
from oprack_onednn.dnnl import _c
from oprack_onednn.dnnl.layout import NotServedError, contiguous_strides
from oprack_onednn.dnnl.library import LIBRARY
from oprack_onednn.dnnl.objects import MemoryDesc
from oprack_onednn.kernels._steps import as_post_ops
from oprack_onednn.kernels.declare import onednn_kernel
from oprack_onednn.stretch.callsite import ShapedPrimitive, attempt, call_site

if TYPE_CHECKING:
    from oprack_onednn.dnnl.objects import Memory, PrimitiveDesc

# Bytes of tiles between the products: what stays in a core's cache.
_BETWEEN = 1 << 19
_VECTOR = 16


def tile_matrix(w: Array, copies: int) -> Array:
    """Filter [K, L, lh, lw] as a matrix that makes of each of `copies` rows [K] side by side its tile [lh, lw, L]."""
    k = w.shape[0]
    tile = w.transpose(0, 2, 3, 1).reshape(k, -1)
    matrix = np.zeros((copies, k, copies, tile.shape[1]), w.dtype)
    matrix[range(copies), :, range(copies)] = tile
    return matrix.reshape(copies * k, -1)


_MATRICES = FromConstants(lambda arrays, copies: tile_matrix(arrays[0], copies))


class _Product:
    """Rows times a constant matrix, and what follows, for any number of rows; the matrix as most rows like it.

    Args:
        dtypes: By oneDNN's numbers, those of both factors and of the result.
    """

    def __init__(
        self, rows: int, inputs: int, outputs: int, bias: bool, post_ops: tuple[str, ...], dtypes: tuple[int, int]
    ) -> None:
        self.inputs, self.outputs, self.attributes = inputs, outputs, as_post_ops(post_ops)[0]
        self.row = MemoryDesc.strided((1, outputs)) if bias else None
        self.dtypes = dtypes
        self.layout = MemoryDesc.any((inputs, outputs), dtypes[0])
        self.layout = self.desc(rows).desc(_c.QUERY_WEIGHTS_MD)
        self.memory: dict[int, Memory] = {}

    def memory_descs(self, rows: int) -> tuple[MemoryDesc, MemoryDesc]:
        """What it reads and what it writes, row-major."""
        widths = zip((self.inputs, self.outputs), self.dtypes, strict=True)
        source, result = (MemoryDesc.strided((rows, width), None, dtype) for width, dtype in widths)
        return source, result

    def desc(self, rows: int) -> PrimitiveDesc:
        source, result = self.memory_descs(rows)
        return primitive_desc("matmul", LIBRARY.engine, source, self.layout, self.row, result, self.attributes)

    def add(self, chain: PrimitiveChain, rows: int, source: Callable[..., Any], result: Callable[..., Any]) -> None:
        """Append it for some rows. source, result: give memory of a layout."""
        given, made = self.memory_descs(rows)
        chain.add(self.desc(rows), {**self.memory, _c.SRC: source(given), _c.DST: result(made)})


class PairPrimitive(ShapedPrimitive):
    """One shape. A narrow second product takes all pixels of a tile at once: its columns would not fill a vector."""

    def __init__(
        self,
        x: Array,
        w: Array,
        bias: Array | None,
        next_w: Array,
        next_bias: Array | None,
        post_ops: tuple[str, ...],
        next_post_ops: tuple[str, ...],
        narrow: bool,
    ) -> None:
        parameters = [p for p in (w, bias, next_w, next_bias) if p is not None]
        if not (x.size and w.size and next_w.size):
            raise NotServedError("an empty tensor")
        if not all(is_constant(p) and p.flags.c_contiguous for p in parameters):
            raise NotServedError("parameters that may change")
        n, c, height, width = x.shape
        _, k, kh, kw = w.shape
        _, outputs, lh, lw = next_w.shape
        self.shape = (n, outputs, height * kh * lh, width * kw * lw)
        pixels, taps, tile = n * height * width, kh * kw, lh * lw * outputs
        copies = taps if tile < _VECTOR else 1
        strided, chain = MemoryDesc.strided, PrimitiveChain()
        self.chain, self.weights = chain, {}
        rows = max(1, min(pixels, _BETWEEN // (4 * taps * k)))
        source = channels_last_desc(x.shape)
        source, dtype = (source.bfloat16, _c.BF16) if narrow else (source, _c.F32)
        given = chain.input(image_desc(x))
        first = _Product(rows, c, taps * k, bias is not None, post_ops, (dtype, dtype))
        self._parameters(first, bias, 1, (taps, k))
        biased, dtypes = next_bias is not None, (dtype, _c.F32)
        second = _Product(rows * taps // copies, copies * k, copies * tile, biased, next_post_ops, dtypes)
        self._parameters(second, next_bias, copies, (copies * lh * lw, outputs))
        memory = chain.in_layout(given, source)
        between = chain.temporary(strided((rows, taps * k), None, dtype))
        result = chain.temporary(strided((pixels, taps * tile)))
        for start in range(0, pixels, rows):
            count = min(rows, pixels - start)
            offset = source.itemsize * start * c
            first.add(chain, count, partial(chain.alias, memory, offset=offset), partial(chain.alias, between))
            target = partial(chain.alias, result, offset=4 * start * taps * tile)
            second.add(chain, count * taps // copies, partial(chain.alias, between), target)
        sizes = {"n": n, "h": height, "w": width, "kh": kh, "kw": kw, "lh": lh, "lw": lw, "k": outputs}
        steps = dict(zip(sizes, contiguous_strides(list(sizes.values())), strict=True))
        order = ("n", "h", "kh", "lh", "w", "kw", "lw", "k")
        shape = [sizes[d] for d in order]
        tiles = chain.alias(result, strided(shape, [steps[d] for d in order]))
        chain.reorder(tiles, chain.output(strided(shape)))

    def _parameters(self, product: _Product, bias: Array | None, copies: int, shape: tuple[int, ...]) -> None:
        """Add a product's matrix and bias to the inputs. copies: on the matrix's diagonal. shape: (times, bias)."""
        matrix, external = MemoryDesc.strided((product.inputs, product.outputs)), self.chain.external
        self.weights[len(external)] = Weights(matrix, product.layout, derive=lambda w: _MATRICES((w,), copies))
        product.memory[_c.WEIGHTS] = self.chain.input(product.layout)
        if product.row is not None:
            self.weights[len(external)] = Weights(MemoryDesc.strided(shape, (0, 1)), MemoryDesc.strided(shape))
            product.memory[_c.BIAS] = self.chain.input(product.row)


def _find(
    attrs: Mapping[str, Any],
    x: Array,
    w: Array,
    bias: Array | None,
    next_w: Array,
    next_bias: Array | None,
) -> PairPrimitive | None:
    if any(b is not None and b.ndim != 1 for b in (bias, next_bias)) or next_w.shape[0] != w.shape[1]:
        return None
    post_ops = tuple(attrs["post_ops"]), tuple(attrs["next_post_ops"])
    known = tuple(p is not None and is_constant(p) for p in (w, bias, next_w, next_bias))
    key = ("conv2d_transpose_pair", x.shape, x.strides, w.shape, next_w.shape, bias is None, next_bias is None, known)
    more = (*post_ops, is_narrow(attrs))
    return THREAD.primitive((*key, *more), _build, x, w, bias, next_w, next_bias, *more)


def _build(*given: Any) -> PairPrimitive:
    """In float32 where oneDNN has no product in bfloat16."""
    if given[-1]:
        with suppress(NotServedError):
            return PairPrimitive(*given)
    plain = (*given[:-1], False)
    return PairPrimitive(*plain)


def _specialize(call: KernelSpecialization) -> Callable[..., Any]:
    return call_site(lambda *arrays: _find(call.attrs, *arrays, *[None] * (5 - len(arrays))))


@onednn_kernel("onednn_conv2d_transpose_pair", specialize=_specialize)
def conv_transpose_pair(
    Input: Array,
    Filter: Array,
    Bias: Array | None = None,
    NextFilter: RequiredArray = None,
    NextBias: Array | None = None,
    *,
    ctx: KernelContext,
) -> Array:
    return attempt(partial(_find, ctx.attrs), Input, Filter, Bias, NextFilter, NextBias)


@kernel("onednn_conv2d_transpose_pair", place="cpu", dtypes=FLOATS)
def reference_conv_transpose_pair(
    Input: Array,
    Filter: Array,
    Bias: Array | None = None,
    NextFilter: RequiredArray = None,
    NextBias: Array | None = None,
    *,
    ctx: KernelContext,
) -> Array:
    return by_steps(Input, Filter, Bias, NextFilter, NextBias, ctx.attrs, ctx)


def by_steps(
    x: Array,
    w: Array,
    bias: Array | None,
    next_w: Array,
    next_bias: Array | None,
    attrs: Mapping[str, Any],
    ctx: KernelContext,
) -> Array:
    """One transposed convolution after the other, each with what follows it."""
    for filter, row, post_ops in ((w, bias, attrs["post_ops"]), (next_w, next_bias, attrs["next_post_ops"])):
        own = {"strides": list(filter.shape[2:])}
        x = after(ctx.run_op("conv2d_transpose", {"Input": x, "Filter": filter}, own), 1, row, None, post_ops, ctx)
    return x
