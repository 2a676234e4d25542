"""onednn_conv2d_chain: convolutions one after the other, for some rows or images at a time."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from oprack.kernel import Array, KernelContext, KernelSpecialization, kernel
from oprack.tensor import numpy_dtype
from oprack.types import FLOATS
from oprack_nn.kernels.with_post_ops import as_output, widened
from oprack_nn.ops.post_ops import RESIDUAL
from oprack_nn.ops.precision import BFLOAT16, NAME, is_narrow, rounds_output

from oprack_onednn.chain.memory import channels_last_desc, image_desc, is_channels_last
from oprack_onednn.chain.parameters import Weights, is_constant
from oprack_onednn.chain.primitive_chain import PrimitiveChain
from oprack_onednn.chain.thread import THREAD
from oprack_onednn.dnnl import _c
from oprack_onednn.dnnl.layout import NotServedError
from oprack_onednn.dnnl.library import LIBRARY
from oprack_onednn.dnnl.objects import Memory, MemoryDesc
from oprack_onednn.dnnl.operands import FLOAT
from oprack_onednn.kernels._conv_shape import ConvShape, grouped
from oprack_onednn.kernels._convolution import Layer, layers_primitive, result_shape
from oprack_onednn.kernels._steps import as_post_ops
from oprack_onednn.kernels.declare import onednn_kernel
from oprack_onednn.stretch.callsite import ShapedPrimitive, attempt, call_site, varying
from oprack_onednn.stretch.stretch import joins

if TYPE_CHECKING:
    from oprack_onednn.dnnl.objects import PrimitiveDesc
    from oprack_onednn.dnnl.operands import External


def by_steps(
    x: Array,
    filters: Sequence[Array],
    biases: Sequence[Array],
    residual: Array | None,
    layers: tuple[Layer, ...],
    ctx: KernelContext,
) -> Array:
    """One convolution after the other."""
    for w, layer in zip(filters, layers, strict=True):
        bias = None if layer.bias is None else biases[layer.bias]
        attrs = dict(strides=list(layer.strides), paddings=list(layer.paddings), groups=layer.groups)
        attrs |= {"post_ops": list(layer.post_ops), **({NAME: BFLOAT16} if layer.bfloat16 else {})}
        given = {"Input": x, "Filter": w, "Bias": bias, "Residual": residual if RESIDUAL in layer.post_ops else None}
        x = ctx.run_op("conv2d_post_ops", given, attrs)
    return x


def layers_of(attrs: Mapping[str, Any]) -> tuple[Layer, ...]:
    """The convolutions that the op's attributes describe."""
    found, biases, post_ops = [], 0, list(attrs["post_ops"])
    for i, groups in enumerate(attrs["groups"]):
        strides, paddings = attrs["strides"][2 * i : 2 * i + 2], attrs["paddings"][4 * i : 4 * i + 4]
        count = attrs["post_op_counts"][i]
        bias = biases if attrs["biased"][i] else None
        found.append(Layer(tuple(strides), tuple(paddings), groups, bias, tuple(post_ops[:count]), is_narrow(attrs)))
        biases, post_ops = biases + attrs["biased"][i], post_ops[count:]
    return tuple(found)


# Bytes of the largest result in between that each thread computes at a time.
_CACHE = 5 << 19
# Rows that neighbouring parts both need may make it this much longer.
_OVERLAP = 1.15


class _Slice(NamedTuple):
    """Images first, first + 1 ... of rows begin ... end - 1 of the result: several whole images, or rows of one."""

    first: int
    images: int
    begin: int
    end: int


class _Step(NamedTuple):
    """One convolution of a part.

    Attributes:
        first: The first row that it reads.
        shape: Of what it reads.
        above: Zeros above that.
        below: Zeros below.
        result: The shape of its result.
        geometry: What its primitive sees.
        desc: Its primitive.
        at: The place of the residual among the primitive's post-ops, or None.
    """

    first: int
    shape: tuple[int, ...]
    above: int
    below: int
    result: tuple[int, ...]
    geometry: ConvShape
    desc: PrimitiveDesc
    at: int | None


class ConvChainPrimitive(ShapedPrimitive):
    """One shape, whose layers are primitives of oneDNN."""

    def __init__(
        self,
        x: Array,
        filters: tuple[Array, ...],
        biases: tuple[Array, ...],
        residual: Array | None,
        rounded: bool,
        layers: tuple[Layer, ...],
    ) -> None:
        self.filters, self.shapes = filters, [x.shape]
        # rows of one channel have nothing to add up: they are as fast as they are read
        narrow = [layer.bfloat16 and w.shape[1] > 1 for layer, w in zip(layers, filters, strict=True)]
        self.layers = [layer._replace(bfloat16=b) for layer, b in zip(layers, narrow, strict=True)]
        self.dtype = numpy_dtype("bfloat16") if rounded else FLOAT
        self._writes_bfloat16 = [a and b for a, b in zip(narrow, [*narrow[1:], rounded], strict=True)]
        # what has to be laid out anew is rounded on the way; else it is rounded part by part, in the caches
        at_once = x.dtype.itemsize == 2 or not is_channels_last(x)
        self._reads_bfloat16 = [narrow[0] and at_once, *self._writes_bfloat16[:-1]]
        self._adds_bfloat16 = residual is not None and residual.dtype.itemsize == 2
        for w, layer in zip(filters, layers, strict=True):
            self.shapes.append(result_shape(self.shapes[-1], w, layer))
        self.shape = self.shapes[-1]
        if residual is not None and residual.shape != self.shape:
            raise NotServedError("a residual of another shape")
        self._descs: dict[Any, tuple[ConvShape, PrimitiveDesc, int | None]] = {}
        self._chosen: list[MemoryDesc | None] = [None] * len(layers)
        self.chain = PrimitiveChain()
        parts = [(part, self._steps(part)) for part in self._parts()]
        source = self._declare_operands(x, biases, residual)
        self._between = self._scratch([steps for _, steps in parts])
        for part, steps in parts:
            self._add(part, steps, source)
        if self._target is not self._result:
            self.chain.reorder(self._target, self._result)

    def _declare_operands(self, x: np.ndarray, biases: Sequence[np.ndarray], residual: np.ndarray | None) -> Memory:
        """Declare the chain's operands in the order of the op's inputs; returns the images, channels last."""
        chain = self.chain
        source = chain.input(image_desc(x))
        self._weights = []
        self.weights = {}
        for i, (w, chosen) in enumerate(zip(self.filters, self._chosen, strict=True)):
            assert chosen is not None  # the first part's steps have decided
            self.weights[1 + i] = Weights(MemoryDesc.strided(grouped(w.shape, self.layers[i].groups)), chosen)
            self._weights.append(chain.input(chosen))
        self._biases = [chain.input(MemoryDesc.strided(b.shape)) for b in biases]
        self._residual: Memory | None = None if residual is None else chain.input(image_desc(residual))
        self._result = chain.output(self._desc(self.shape, self.dtype != FLOAT))
        written = self._desc(self.shape, self._writes_bfloat16[-1])
        self._target = self._result if self._result.desc == written else chain.temporary(written)
        if self._residual is not None:
            self._residual = chain.in_layout(self._residual, self._desc(self.shape, self._adds_bfloat16))
        return chain.in_layout(source, self._desc(x.shape, self._reads_bfloat16[0]))

    def _scratch(self, parts: Sequence[Sequence[Any]]) -> list[Memory]:
        """Memory for results in between: two pieces in turns, since a convolution reads one and writes the other."""
        sizes, rounded = [0, 0], 0
        for steps in parts:
            for turn, step in enumerate(steps[:-1]):
                sizes[turn % 2] = max(sizes[turn % 2], math.prod(step.result))
            for i, step in enumerate(steps):
                if self.layers[i].bfloat16 and not self._reads_bfloat16[i]:
                    rounded = max(rounded, math.prod(step.shape))
        if rounded:
            self._rounded = self.chain.temporary(MemoryDesc.strided((rounded,)).bfloat16)
        return [self.chain.temporary(MemoryDesc.strided((size,))) for size in sizes if size]

    def _desc(self, shape: tuple[int, ...], bfloat16: bool) -> MemoryDesc:
        desc = channels_last_desc(shape)
        return desc.bfloat16 if bfloat16 else desc

    @staticmethod
    def _geometry(w: Array, layer: Layer, shape: tuple[int, ...], paddings: tuple[int, ...]) -> ConvShape:
        return ConvShape(shape, w, layer.strides, paddings, (1, 1), layer.groups, "EXPLICIT")

    def _rows(self, i: int, begin: int, end: int) -> tuple[int, ...]:
        """(first row, end, zeros above, zeros below) of what convolution i needs for some rows of its result."""
        stride, (top, *_), height = self.layers[i].strides[0], self.layers[i].paddings, self.shapes[i][2]
        first, last = begin * stride - top, (end - 1) * stride - top + self.filters[i].shape[2]
        return max(first, 0), min(last, height), max(-first, 0), max(last - height, 0)

    def _needed(self, rows: int) -> int:
        """Pixels that are computed for `rows` rows somewhere in the middle of an image."""
        total, begin, end = 0, 0, rows
        for i in range(len(self.layers) - 1, -1, -1):
            total += (end - begin) * math.prod(self.shapes[i + 1][3:]) * self.shapes[i + 1][1]
            stride = self.layers[i].strides[0]
            begin, end = begin * stride, (end - 1) * stride + self.filters[i].shape[2]
        return total

    def _parts(self) -> list[_Slice]:
        n, _, height, _ = self.shape
        largest = 4 * max(math.prod(s[1:]) for s in self.shapes[1:-1])
        cache = _CACHE * (THREAD.limit or LIBRARY.num_threads())
        if largest <= cache:
            images = max(cache // largest, 1)
            return [_Slice(i, min(images, n - i), 0, height) for i in range(0, n, images)]
        rows = max(height * cache // largest, 1)
        while rows < height and self._needed(rows) * height > _OVERLAP * rows * self._needed(height):
            rows += 1
        # Parts of equal height share descriptors; a small last part would cost its own.
        rows = -(-height // -(-height // rows))  # about equal parts
        return [_Slice(i, 1, r, min(r + rows, height)) for i in range(n) for r in range(0, height, rows)]

    def _steps(self, part: _Slice) -> list[_Step]:
        """(geometry, descriptor, (first row, shape, zeros above) of the source) of each convolution of a part."""
        found, (begin, end) = [], (part.begin, part.end)
        for i in range(len(self.layers) - 1, -1, -1):
            layer = self.layers[i]
            # whole images with the rows that nothing needs: several of them lie behind each other
            whole = part.end - part.begin == self.shape[2]
            first, last, above, below = (
                (0, self.shapes[i][2], *layer.paddings[:2]) if whole else self._rows(i, begin, end)
            )
            shape = (part.images, self.shapes[i][1], last - first, self.shapes[i][3])
            result = (part.images, self.shapes[i + 1][1], end - begin, self.shapes[i + 1][3])
            found.append(_Step(first, shape, above, below, result, *self._primitive(i, shape, above, below)))
            begin, end = first, last
        return found[::-1]

    def _primitive(
        self, i: int, shape: tuple[int, ...], above: int, below: int
    ) -> tuple[ConvShape, PrimitiveDesc, int | None]:
        """What computes convolution i for a part of that shape: the last attributes of its step."""
        key, w, layer = (i, shape, above, below), self.filters[i], self.layers[i]
        if key not in self._descs:
            geometry = self._geometry(w, layer, shape, (above, below, *layer.paddings[2:]))
            row = None if layer.bias is None else MemoryDesc.strided((w.shape[0],))
            result = geometry.seen(self._desc(geometry.shape, self._writes_bfloat16[i]))
            added = geometry.seen(self._desc(geometry.shape, self._adds_bfloat16))
            attributes, at = as_post_ops(layer.post_ops, added)
            source = geometry.seen(self._desc(shape, layer.bfloat16))
            desc = geometry.forward(source, result, row, attributes, self._chosen[i])
            # The first part decides how the filter is packed, and all others take it so.
            self._chosen[i] = self._chosen[i] or desc.desc(_c.QUERY_WEIGHTS_MD)
            self._descs[key] = geometry, desc, at
        return self._descs[key]

    def _add(
        self,
        part: _Slice,
        steps: Sequence[_Step],
        source: External | Memory,
    ) -> None:
        """Append the convolutions of a part."""
        chain = self.chain

        def piece(memory: External | Memory, whole: tuple[int, ...], first: int, shape: tuple[int, ...]) -> Memory:
            """Whole images of memory, or one from row `first` on."""
            _, c, height, width = whole
            size = memory.desc.itemsize
            offset = size * (part.first * height + first) * width * c
            return chain.alias(memory, self._desc(shape, size == 2), offset)

        given = piece(source, self.shapes[0], steps[0].first, steps[0].shape)
        for i, (layer, step) in enumerate(zip(self.layers, steps, strict=True)):
            geometry, result, added = step.geometry, step.result, None
            if RESIDUAL in layer.post_ops:
                assert self._residual is not None
                added = piece(self._residual, self.shape, part.begin, result)
            if layer.bfloat16 and given.desc.itemsize == 4:
                given = chain.reorder(given, chain.alias(self._rounded, given.desc.bfloat16))
            read = given
            if i == len(steps) - 1:
                given = piece(self._target, self.shape, part.begin, result)
            else:
                given = chain.alias(self._between[i % 2], self._desc(result, self._writes_bfloat16[i]))
            memory = {_c.SRC: chain.reinterpret(read, geometry.seen(read.desc)), _c.WEIGHTS: self._weights[i]}
            if layer.bias is not None:
                memory[_c.BIAS] = self._biases[layer.bias]
            if step.at is not None and added is not None:
                memory[_c.POST_OP * (step.at + 1) | _c.SRC_1] = chain.reinterpret(added, geometry.seen(added.desc))
            memory[_c.DST] = chain.reinterpret(given, geometry.seen(given.desc))
            chain.add(step.desc, memory)


def find_primitive(
    layers: tuple[Layer, ...],
    x: Array,
    filters: tuple[Array, ...],
    biases: tuple[Array, ...],
    residual: Array | None,
    rounded: bool = False,
) -> ShapedPrimitive | None:
    """The primitive for the op's inputs; None when there is none."""
    rows = [w.shape[:1] for w, layer in zip(filters, layers, strict=True) if layer.bias is not None]
    if [b.shape for b in biases] != rows:
        return None
    forms = tuple((a.shape, a.strides, a.dtype.char) for a in (x, *([] if residual is None else [residual])))
    key = ("conv chain", forms, tuple(w.shape for w in filters), rounded, layers)
    constant = tuple(is_constant(a) for a in (*filters, *biases))
    return THREAD.primitive((*key, constant), _build, x, filters, biases, residual, rounded, layers)


def _build(*given: Any) -> ShapedPrimitive:
    """In float32 where oneDNN has no convolution in bfloat16."""
    x, filters, biases, residual, rounded, layers = given
    if not all(is_constant(a) and a.flags.c_contiguous for a in (*filters, *biases)):
        raise NotServedError("parameters that may change")
    native = None if rounded else layers_primitive(layers, x, filters, residual)
    if native is not None:
        return native
    if layers[0].bfloat16:
        with suppress(NotServedError):
            return ConvChainPrimitive(*given)
    plain = (*given[:-1], tuple(layer._replace(bfloat16=False) for layer in layers))
    return ConvChainPrimitive(*plain)


def _specialize(call: KernelSpecialization) -> Callable[..., Any]:
    layers, rounded = layers_of(call.attrs), rounds_output(call.attrs)
    count, biases = len(layers), sum(layer.bias is not None for layer in layers)

    def find(x: Array, *more: Array) -> ShapedPrimitive | None:
        residual = more[count + biases] if len(more) > count + biases else None
        return find_primitive(layers, x, more[:count], more[count : count + biases], residual, rounded)

    free, dtypes = varying(call, {"Input": 0, "Residual": 1 + count + biases})
    site = call_site(find, free, dtypes=dtypes)

    def alone(x: Array, filters: Sequence[Array], biases: Sequence[Array] = (), residual: Array | None = None) -> Array:
        return site(x, *filters, *biases)

    def added(x: Array, filters: Sequence[Array], biases: Sequence[Array] = (), residual: Array | None = None) -> Array:
        return site(x, *filters, *biases, residual)

    def in_a_row(
        x: Array, filters: Sequence[Array], biases: Sequence[Array] = (), residual: Array | None = None
    ) -> tuple[Array, ...]:
        return (x, *filters, *biases, *((residual,) if len(free) > 1 else ()))

    return joins(alone if len(free) == 1 else added, replace(site.joinable, arrange=in_a_row))


@onednn_kernel("onednn_conv2d_chain", specialize=_specialize, unread=("Input", "Residual"))
def conv_chain(
    Input: Array,
    Filter: list[Array],
    Bias: list[Array] | None = None,
    Residual: Array | None = None,
    *,
    ctx: KernelContext,
) -> Array:
    given = Input, tuple(Filter), tuple(Bias or ()), Residual
    x, filters, biases, residual = given
    layers, rounded = layers_of(ctx.attrs), rounds_output(ctx.attrs)
    return attempt(lambda *_: find_primitive(layers, *given, rounded), x, *filters, *biases, residual)


@kernel("onednn_conv2d_chain", place="cpu", dtypes=FLOATS)
def reference_chain(
    Input: Array,
    Filter: list[Array],
    Bias: list[Array] | None = None,
    Residual: Array | None = None,
    *,
    ctx: KernelContext,
) -> Array:
    y = by_steps(widened(Input), Filter, Bias or (), widened(Residual), layers_of(ctx.attrs), ctx)
    return as_output(y, ctx.attrs)
