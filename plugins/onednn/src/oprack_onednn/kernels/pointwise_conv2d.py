"""onednn_pointwise_conv2d: images as matrices of pixels and channels, times one matrix, or one per image.

A scale of the input's channels is taken into the weights when these are fewer than the pixels, so that it costs next to
nothing; a scale of the result is a post-op of the product, which takes one row per image where a convolution does not.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from oprack.kernel import Array, KernelContext, KernelSpecialization, kernel
from oprack.tensor import numpy_dtype
from oprack.types import FLOATS
from oprack_nn.kernels.with_post_ops import after, as_output, widened
from oprack_nn.ops.precision import is_narrow, rounds_output

from oprack_onednn.chain.descs import primitive_desc
from oprack_onednn.chain.memory import is_channels_last
from oprack_onednn.chain.parameters import Weights, is_constant
from oprack_onednn.chain.primitive_chain import PrimitiveChain
from oprack_onednn.chain.thread import THREAD
from oprack_onednn.dnnl import _c
from oprack_onednn.dnnl.layout import NotServedError
from oprack_onednn.dnnl.library import LIBRARY
from oprack_onednn.dnnl.objects import Attributes, MemoryDesc
from oprack_onednn.dnnl.operands import FLOAT
from oprack_onednn.kernels._convolution import Layer, layers_primitive
from oprack_onednn.kernels._steps import as_post_ops
from oprack_onednn.kernels.declare import onednn_kernel
from oprack_onednn.stretch.callsite import ShapedPrimitive, attempt, call_site, varying

if TYPE_CHECKING:
    from oprack_onednn.dnnl.objects import Memory
    from oprack_onednn.dnnl.operands import External

# Weights for every image are kept ready for scaling up to this many numbers, for each number of images that is met.
_MOST_WEIGHTS = 1 << 18
# Channels of a result from which on it costs nothing to scale some pixels at a time, which then stay in the caches.
_MANY_OUTPUTS = 40


class PointwisePrimitive(ShapedPrimitive):
    """One shape of everything."""

    def __init__(
        self,
        x: Array,
        w: Array,
        bias: Array | None,
        input_scale: Array | None,
        output_scale: Array | None,
        residual: Array | None,
        post_ops: tuple[str, ...],
        rounded: bool,
        bfloat16: bool,
    ) -> None:
        n, c, h, width = x.shape
        k, pixels = w.shape[0], h * width
        self.shape = (n, k, h, width)
        strided = MemoryDesc.strided
        chain = self.chain = PrimitiveChain()
        plain, result = strided((n, pixels, c)), strided((n, pixels, k))
        given: Memory = chain.input(plain.bfloat16 if x.dtype.itemsize == 2 else plain)
        memory: dict[int, Memory] = {}
        # the scale goes into the weights where these are fewer than the pixels
        scaled = input_scale is not None and k < pixels and n * k * c <= _MOST_WEIGHTS
        # weights that are scaled for each image are not packed before, so there is nothing to round once
        bfloat16 = bfloat16 and not scaled
        dtype = _c.BF16 if bfloat16 else _c.F32
        wanted = strided((n, c, k), (k * c, 1, c)) if scaled else MemoryDesc.any((1, c, k), dtype)
        row = None if bias is None else strided((1, 1, k))
        factor = [] if output_scale is None else [("binary", _c.BINARY_MUL, strided((n, 1, k)))]
        added = result.bfloat16 if residual is not None and residual.dtype.itemsize == 2 else result
        attributes, at = as_post_ops(post_ops, added, factor)
        target = result.bfloat16 if rounded else result
        self.dtype = numpy_dtype("bfloat16") if rounded else FLOAT
        source, result = (plain.bfloat16, target) if bfloat16 else (plain, result)
        desc = primitive_desc("matmul", LIBRARY.engine, source, wanted, row, result, attributes)
        # scaled in one go, they need one copy per image; else one that is packed as the product wants it
        chosen = strided((n, k, c)) if scaled else desc.desc(_c.QUERY_WEIGHTS_MD)
        view = strided((n, k, c), (0, c, 1)) if scaled else strided((1, c, k), (k * c, 1, c))
        self.weights = {1: Weights(view, chosen)}
        memory[_c.WEIGHTS] = chain.input(chosen)
        if row is not None:
            memory[_c.BIAS] = chain.input(row)
        if input_scale is not None:
            scale = chain.input(strided((n, 1, c)))
            if scaled:
                memory[_c.WEIGHTS] = chain.alias(self._times(memory[_c.WEIGHTS], scale), wanted)
            else:
                given = self._times(chain.in_layout(given, plain), scale)
        memory[_c.SRC] = chain.in_layout(given, source)
        if output_scale is not None:
            memory[_c.POST_OP | _c.SRC_1] = chain.input(strided((n, 1, k)))
        if at is not None:
            memory[_c.POST_OP * (at + 1) | _c.SRC_1] = chain.input(added)
        written = chain.output(target)
        memory[_c.DST] = written if result == target else chain.temporary(result)
        chain.add(desc, memory)
        if memory[_c.DST] is not written:
            chain.reorder(memory[_c.DST], written)

    def _times(self, memory: Memory, scale: External) -> Memory:
        """Append the product of memory [N, ..., C] with [N, 1, C]; returns its memory."""
        arguments = (_c.BINARY_MUL, memory.desc, scale.desc, memory.desc, Attributes())
        result = self.chain.temporary(memory.desc)
        self.chain.add(
            primitive_desc("binary", LIBRARY.engine, *arguments), {_c.SRC: memory, _c.SRC_1: scale, _c.DST: result}
        )
        return result


def _require_served(
    x: np.ndarray,
    w: np.ndarray,
    input_scale: np.ndarray | None,
    output_scale: np.ndarray | None,
    residual: np.ndarray | None,
) -> None:
    """Raise NotServedError for operands that NumPy's kernel has to compute with."""
    n, _, h, width = x.shape
    images = [a for a in (x, residual) if a is not None]
    scales = [a for a in (input_scale, output_scale) if a is not None]
    if 0 in x.shape or not is_constant(w) or not w.flags.c_contiguous or not all(map(is_channels_last, images)):
        raise NotServedError("an empty tensor, weights that may change, or images that are not channels-last")
    if any(s.shape[0] != n or not is_channels_last(s) for s in scales):
        raise NotServedError("scales that are not of each image")
    if residual is not None and residual.shape != (n, w.shape[0], h, width):
        raise NotServedError("a residual of another shape")


def _find(
    post_ops: tuple[str, ...],
    rounded: bool,
    bfloat16: bool,
    x: Array,
    w: Array,
    bias: Array | None,
    *others: Array | None,
) -> ShapedPrimitive | None:
    """The primitive for the op's inputs; None when there is none."""
    if x.ndim != 4 or (bias is not None and (bias.ndim != 1 or not bias.flags.c_contiguous)):
        return None
    forms = tuple(None if a is None else (a.shape, a.strides, a.dtype.char) for a in (x, *others))
    key = ("pointwise", w.shape, bias is not None, is_constant(w), forms, post_ops, rounded, bfloat16)
    return THREAD.primitive(key, _build, x, w, bias, *others, post_ops, rounded, bfloat16)


def _build(*given: Any) -> ShapedPrimitive:
    """In float32 where oneDNN has no product in bfloat16."""
    x, w, bias, input_scale, output_scale, residual, post_ops, rounded, bfloat16 = given
    _require_served(x, w, input_scale, output_scale, residual)
    scaled = input_scale is not None
    if not (rounded or bfloat16) and output_scale is None and not (scaled and w.shape[0] < _MANY_OUTPUTS):
        layer = Layer((1, 1), (0, 0, 0, 0), 1, None if bias is None else 0, post_ops)
        native = layers_primitive([layer], x, [w], residual, scaled)
        if native is not None:
            return native
    if bfloat16:
        with suppress(NotServedError):
            return PointwisePrimitive(*given)
    plain = (*given[:-1], False)
    return PointwisePrimitive(*plain)


def _specialize(call: KernelSpecialization) -> Callable[..., Any]:
    free, dtypes = varying(call, {"Input": 0, "InputScale": 3, "OutputScale": 4, "Residual": 5})
    own = _own(call.attrs)
    return call_site(lambda *arrays: _find(*own, *arrays, *[None] * (6 - len(arrays))), free, dtypes=dtypes)


def _own(attrs: Mapping[str, Any]) -> tuple[tuple[str, ...], bool, bool]:
    """What `_find` takes of the attributes."""
    return tuple(attrs["post_ops"]), rounds_output(attrs), is_narrow(attrs)


@onednn_kernel("onednn_pointwise_conv2d", specialize=_specialize, unread=("Input", "Residual"))
def pointwise(
    Input: Array,
    Filter: Array,
    Bias: Array | None = None,
    InputScale: Array | None = None,
    OutputScale: Array | None = None,
    Residual: Array | None = None,
    *,
    ctx: KernelContext,
) -> Array:
    return attempt(partial(_find, *_own(ctx.attrs)), Input, Filter, Bias, InputScale, OutputScale, Residual)


@kernel("onednn_pointwise_conv2d", place="cpu", dtypes=FLOATS)
def reference_pointwise(
    Input: Array,
    Filter: Array,
    Bias: Array | None = None,
    InputScale: Array | None = None,
    OutputScale: Array | None = None,
    Residual: Array | None = None,
    *,
    ctx: KernelContext,
) -> Array:
    x, residual = widened(Input), widened(Residual)
    return as_output(by_steps(x, Filter, Bias, InputScale, OutputScale, residual, ctx.attrs, ctx), ctx.attrs)


def by_steps(
    x: Array,
    w: Array,
    bias: Array | None,
    input_scale: Array | None,
    output_scale: Array | None,
    residual: Array | None,
    attrs: Mapping[str, Sequence[str]],
    ctx: KernelContext,
) -> Array:
    """The ops that it stands for, one by one."""

    def times(a: Array, scale: Array) -> Array:
        return ctx.run_op("elementwise_mul", {"X": a, "Y": scale}, {"axis": -1})

    if input_scale is not None:
        x = times(x, input_scale)
    y = ctx.run_op("conv2d", {"Input": x, "Filter": w})
    if output_scale is not None:
        y = times(after(y, 1, bias, None, [], ctx), output_scale)
        bias = None
    return after(y, 1, bias, residual, attrs["post_ops"], ctx)
