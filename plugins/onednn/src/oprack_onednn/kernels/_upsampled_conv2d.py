"""The primitives of onednn_upsampled_conv2d: small convolutions, and copies that spread their results.

A 3x3 or 1x1 convolution over images whose pixels were repeated f times along H and W, computed before that.

Of the f results that one pixel becomes along a dim, the first sees its neighbour before with one of three taps and
itself with two, the last sees itself with two and its neighbour behind with one, and those between see nothing but
itself. So along a dim there are two kernels: of two taps between neighbours j - 1 and j, which give the last result of
j - 1 and the first of j side by side (the image is padded by one pixel on both sides), and of one tap. With a window of
1x1 all results are the same.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from ctypes import c_void_p, cast
from functools import cache, lru_cache, partial
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
from oprack.kernel import Array
from oprack.python.records import dataclass

from oprack_onednn.c.runner import RUNNER
from oprack_onednn.chain.descs import primitive_desc
from oprack_onednn.chain.memory import channels_last_desc, image_desc
from oprack_onednn.chain.native_steps import CopyGrid, CopyTable, NativeStep
from oprack_onednn.chain.parameters import FromConstants, Weights
from oprack_onednn.chain.primitive_chain import BoundChain, PrimitiveChain
from oprack_onednn.dnnl import _c
from oprack_onednn.dnnl.layout import NotServedError
from oprack_onednn.dnnl.library import LIBRARY
from oprack_onednn.dnnl.objects import Attributes, MemoryDesc, dims
from oprack_onednn.dnnl.operands import FLOAT
from oprack_onednn.kernels._implementation import convolution
from oprack_onednn.kernels._steps import algorithm

if TYPE_CHECKING:
    from oprack_onednn.dnnl.objects import Memory
    from oprack_onednn.dnnl.operands import External


@dataclass(frozen=True, eq=False)
class Axis:
    """A small kernel along one dim.

    Attributes:
        sums: [results, taps of the small kernel, taps of the convolution].
        margin: Results of each pixel, at both ends, that are not this kernel's.
    """

    sums: np.ndarray
    margin: int = 0

    @property
    def results(self) -> int:
        return self.sums.shape[0]

    @property
    def taps(self) -> int:
        return self.sums.shape[1]

    @property
    def pad(self) -> int:
        """Of the image, on both sides."""
        return self.taps // 2

    def table(self, size: int, factor: int) -> CopyTable:
        """Where results go along this dim of `size` pixels."""
        return _table(self.taps, self.margin, size, factor)


@lru_cache(maxsize=256)
def _table(taps: int, margin: int, size: int, factor: int) -> CopyTable:
    if taps == 1:
        # all results of a pixel, but for those at both ends that are not this kernel's, are one and the same
        found = [(j, 0, j * factor + i, 1) for j in range(size) for i in range(margin, factor - margin)]
    else:
        # the first result of the first pixel and the last of the last; the others lie side by side in pairs
        found = [(0, 1, 0, 1), *((i, 0, i * factor - 1, 2) for i in range(1, size)), (size, 0, factor * size - 1, 1)]
    return CopyTable(found)


_ENDS = Axis(np.array([[[1, 1, 0], [0, 0, 1]], [[1, 0, 0], [0, 1, 1]]], np.float32))
_INNER = Axis(np.ones((1, 1, 3), np.float32), 1)
_WHOLE = {window: Axis(np.eye(window, dtype=np.float32)[None]) for window in (1, 3)}


def _axes(factor: int, window: int) -> tuple[Axis, ...]:
    if factor == 1 or window == 1:
        return (_WHOLE[window],)
    return (_ENDS,) if factor == 2 else (_ENDS, _INNER)


@dataclass(frozen=True)
class SmallConv:
    """A small convolution. row: where its weights begin in what `expanded` gives, by taps, then results."""

    high: Axis
    wide: Axis
    row: int

    @property
    def results(self) -> int:
        return self.high.results * self.wide.results

    @property
    def taps(self) -> int:
        return self.high.taps * self.wide.taps


# The parts follow from three small numbers; every shape of an op asks for them again.
@lru_cache(maxsize=256)
def small_convs(factor: int, outputs: int, window: int) -> tuple[SmallConv, ...]:
    """The small convolutions that make up one with `outputs` channels over repeated pixels."""
    found, row = [], window**2 * outputs if factor > 1 else 0
    for high, wide in product(_axes(factor, window), repeat=2):
        conv = SmallConv(high, wide, row)
        found.append(conv)
        row += conv.taps * conv.results * outputs
    return tuple(found)


def expanded(w: np.ndarray, factor: int) -> np.ndarray:
    """Weights [K, C, n, n] as rows [*, C]: the taps, then what each of `small_convs` adds up from them."""
    c, window = w.shape[1:3]
    rows = [w.transpose(2, 3, 0, 1).reshape(-1, c)]
    if factor > 1:
        # Sums of taps are rounded once, as the taps themselves were when they were trained.
        taps = rows[0].reshape(window**2, -1).astype(np.float64)
        for high, wide in product(_axes(factor, window), repeat=2):
            chosen = np.einsum("ptd,que->tupqde", high.sums, wide.sums).reshape(-1, window**2)
            rows.append((chosen @ taps).reshape(-1, c).astype(w.dtype))
    # with one result the taps are a view whose columns lie first in memory, and joined they would keep that order
    return np.ascontiguousarray(np.concatenate(rows))


EXPANDED = FromConstants(lambda arrays, factor: expanded(arrays[0], factor))


_NOTHING = np.empty(1, np.float32)
_PIXELS = 64  # that are multiplied at once, at least, so that the weights are read as rarely


@cache
def _product() -> int:
    """The address of oneDNN's product of matrices."""
    return cast(LIBRARY.lib.dnnl_sgemm, c_void_p).value or 0


@dataclass(frozen=True)
class Source:
    """One map. kind: what its weights are multiplied with: "", "scale" or "project". constant: whether w is."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    factor: int
    channels: int
    kind: str
    shift: bool
    constant: bool

    @property
    def columns(self) -> int:
        """Of the weights as rows, after what they are multiplied with."""
        return self.shape[1] + self.shift


class Stage:
    """A chain whose external memory goes by keys."""

    def __init__(self) -> None:
        self.chain = PrimitiveChain()
        self.memory: dict[str | tuple[int | str, ...], External] = {}

    def external(self, key: str | tuple[int | str, ...], desc: MemoryDesc) -> External:
        if key not in self.memory:
            self.memory[key] = (self.chain.output if key == "y" else self.chain.input)(desc)
        return self.memory[key]

    def bound(self, operands: Mapping[Any, Array], keep: bool) -> Callable[..., Any]:
        """A function of the operands that are still missing, by key; it returns what run_all takes.

        Args:
            keep: Whether those that are given stay, so that their addresses are set once.
        """
        free = [key for key in self.memory if key not in operands]
        if not self.memory:
            return lambda found: []
        if keep:
            chain = BoundChain(self.chain, [operands.get(key) for key in self.memory])
            return lambda found: [(chain, [found[key] for key in free])]
        whole = self.chain.bound()
        return lambda found: [(whole, [(found if k in found else operands)[k] for k in self.memory])]


def _activations(post_ops: Sequence[str]) -> list[tuple[str, int, float, float]]:
    """What follows the convolution, as oneDNN's post-ops."""
    return [("eltwise", _c.ELTWISE[name], a, b) for name, a, b in map(algorithm, post_ops)]


def _result_shape(sources: Sequence[Source], outputs: int) -> tuple[int, int, int, int]:
    """Shape of the result at full resolution. Raises NotServedError when the maps do not fit together."""
    sizes = {(s.shape[0], s.shape[2] * s.factor, s.shape[3] * s.factor) for s in sources}
    if len(sizes) > 1 or any(0 in s.shape for s in sources) or not outputs:
        raise NotServedError("an empty tensor, or maps that do not fit together")
    ((n, height, width),) = sizes
    return n, outputs, height, width


class UpsampledConvPrimitive:
    """Maps of some shapes. With weights that belong to an image it computes one image, else all.

    Args:
        narrow: Whether maps and weights are rounded to bfloat16; what is spread, and sums of it, are float32.

    Attributes:
        spread: What comes from repeated pixels.
        finish: The convolutions at full resolution, added to it.
    """

    def __init__(
        self,
        sources: tuple[Source, ...],
        outputs: int,
        window: int,
        bias: bool,
        post_ops: tuple[str, ...],
        narrow: bool,
    ) -> None:
        self.sources, self.k, self.window, self._narrow = sources, outputs, window, narrow
        self.shape = _result_shape(sources, outputs)
        self.by_image = any(s.kind for s in sources)
        self.shifted = any(s.shift for s in sources)
        self.images = 1 if self.by_image else self.shape[0]
        self.packed: dict[tuple[str, int, int], Weights] = {}
        self.tiled: set[int] = set()
        self.spread, self.finish = Stage(), Stage()
        self._append_steps(bias, post_ops)

    def _append_steps(self, bias: bool, post_ops: Sequence[str]) -> None:
        """Append the small convolutions and their copies, then the convolutions at full resolution.

        The bias and what follows go with the last step that writes everywhere; `later` is what no step takes in.
        """
        full = [i for i, s in enumerate(self.sources) if s.factor == 1]
        low = [i for i in range(len(self.sources)) if i not in full]
        acts = _activations(post_ops)
        if RUNNER.library is not None and not self._narrow:
            self.later = [] if full else post_ops
            for i in low:
                self._compute(i, bias and not full and i == low[-1], i != low[0])
        else:
            # a lone map: what follows commutes with repeating pixels
            alone = len(self.sources) == 1 and not full and not self.shifted
            self.later = [] if full or alone else post_ops
            self._spread(low, bias and not full, Attributes(acts if alone else ()))
        written = bool(low) or self.shifted
        for i in full:
            last = i == full[-1]
            self._convolve_full(i, bias and last, written, acts if last else [])
            written = True

    def compile_ahead(self) -> None:
        """Have all primitives compiled before the first run."""
        for chain in (self.spread.chain, self.finish.chain):
            chain.compile_ahead()

    def weigh(self, source: Source) -> PrimitiveChain:
        """The primitive that multiplies weights [rows, channels] with what belongs to the image."""
        rows, c = self._rows(source), source.channels
        stage = PrimitiveChain()
        given, result = MemoryDesc.strided((rows, c)), MemoryDesc.strided((rows, source.columns))
        engine = LIBRARY.engine
        if source.kind == "scale":
            other = MemoryDesc.strided((1, c))
            desc = primitive_desc("binary", engine, _c.BINARY_MUL, given, other, result, Attributes())
            slot = _c.SRC_1
        else:
            other = MemoryDesc.strided((c, source.columns))
            desc = primitive_desc("matmul", engine, given, other, None, result, Attributes())
            slot = _c.WEIGHTS
        stage.add(desc, {_c.SRC: stage.input(given), slot: stage.input(other), _c.DST: stage.output(result)})
        return stage

    def _rows(self, source: Source) -> int:
        last = small_convs(source.factor, self.k, self.window)[-1]
        return last.row + last.taps * last.results * self.k

    def _convolve(
        self,
        stage: Stage,
        i: int,
        conv: SmallConv,
        image: External | Memory,
        bias: bool,
        target: Callable[..., Any],
        attributes: Attributes,
    ) -> None:
        """Append a small convolution of a map in memory `image` into the memory that `target` gives for a layout."""
        source = self.sources[i]
        c, columns = source.shape[1], source.columns
        results = conv.results * self.k
        kernel_size = (conv.high.taps, conv.wide.taps)
        result = channels_last_desc(self._result_shape(source, conv))
        pads = dims((conv.high.pad, conv.wide.pad))
        row = MemoryDesc.strided((results,)) if bias else None
        dtype = _c.BF16 if self._narrow else _c.F32
        desc = convolution(
            LIBRARY.engine, _c.FORWARD_INFERENCE, _c.CONVOLUTION_DIRECT, image.desc,
            MemoryDesc.any((results, c, *kernel_size), dtype), row, result, dims((1, 1)), dims((0, 0)), pads, pads,
            attributes, outputs=results,
        )  # fmt: skip
        chosen = desc.desc(_c.QUERY_WEIGHTS_MD)
        view = MemoryDesc.strided(
            (results, c, *kernel_size), (columns, 1, conv.wide.taps * results * columns, results * columns)
        )
        if source.constant and not source.kind:
            key = ("packed", i, conv.row)
            self.packed[key] = Weights(view, chosen, conv.row * columns)
            weights: Memory = stage.external(key, chosen)
        else:
            rows = stage.external(("rows", i), MemoryDesc.strided((self._rows(source), columns)))
            weights = stage.chain.reorder(stage.chain.alias(rows, view, 4 * conv.row * columns), chosen)
        arguments = {_c.SRC: image, _c.WEIGHTS: weights, _c.DST: target(result)}
        if row is not None:
            self.tiled.add(conv.results)
            arguments[_c.BIAS] = stage.external(("bias", conv.results), row)
        stage.chain.add(desc, arguments)

    def _result_shape(self, source: Source, conv: SmallConv) -> tuple[int, ...]:
        spatial = zip(source.shape[2:], (conv.high, conv.wide), strict=True)
        return (self.images, conv.results * self.k, *(size + 2 * a.pad - a.taps + 1 for size, a in spatial))

    def _image(self, stage: Stage, i: int) -> External | Memory:
        """Memory of a map, channels last, rounded where maps are."""
        source = self.sources[i]
        shape = (self.images, *source.shape[1:])
        given = stage.external(("x", i), image_desc(np.lib.stride_tricks.as_strided(_NOTHING, shape, source.strides)))
        wanted = channels_last_desc(shape)
        return stage.chain.in_layout(given, wanted.bfloat16 if self._narrow else wanted)

    def _compute(self, i: int, bias: bool, adds: bool) -> None:
        """Append what a map of repeated pixels gives or adds, as one step of the compiled library."""
        stage, source = self.spread, self.sources[i]
        chain, (_, c, h, w), rows, columns = stage.chain, source.shape, self._rows(source), source.columns
        begin = small_convs(source.factor, self.k, self.window)[0].row
        products = rows - begin
        group = max(1, min(h, _PIXELS // w))
        room = FLOAT.itemsize * chain.threads * (group + 1) * w * products
        weights = stage.external(("rows", i), MemoryDesc.strided((rows, columns)))
        part = MemoryDesc.strided((products, columns))
        memory: dict[int, Memory] = {_c.SRC: self._image(stage, i)}
        memory[_c.WEIGHTS] = chain.alias(weights, part, FLOAT.itemsize * begin * columns)
        if bias:
            self.tiled.add(1)
            memory[_c.BIAS] = stage.external(("bias", 1), MemoryDesc.strided((self.k,)))
        memory[_c.DST] = stage.external("y", channels_last_desc((self.images, *self.shape[1:])))
        form = self.images, h, w, c, source.factor, self.window, self.k
        settings = *form, products, columns, group, adds, bias, _product()
        chain.add(NativeStep("oprack_upsampled", settings, room), memory)

    def _spread(self, low: Sequence[int], bias: bool, attributes: Attributes) -> None:
        chain = self.spread.chain
        found = [(i, p) for i in low for p in small_convs(self.sources[i].factor, self.k, self.window)]
        if not found:
            return
        # small convolutions leave their results in the same memory, one after the other
        size = max(math.prod(self._result_shape(self.sources[i], conv)) for i, conv in found)
        between = chain.temporary(MemoryDesc.strided((size,)))
        images = {i: self._image(self.spread, i) for i in low}
        for i, conv in found:
            target = partial(chain.alias, between)
            self._convolve(self.spread, i, conv, images[i], bias and i == low[-1], target, attributes)
            self._place(self.sources[i], conv, between, i != low[0])

    def _place(self, source: Source, conv: SmallConv, between: Memory, accumulate: bool) -> None:
        """Append the copy of a small convolution's results to their places."""
        k = self.k
        _, _, height, width = self.shape
        _, results, high, wide = self._result_shape(source, conv)
        whole = self.spread.external("y", channels_last_desc((self.images, *self.shape[1:])))
        _, _, h, w = source.shape
        grid = CopyGrid(
            rows=conv.high.table(h, source.factor),
            columns=conv.wide.table(w, source.factor),
            images=self.images,
            width=k,
            image=high * wide * results,
            row=(wide * results, conv.wide.results * k),
            column=(results, k),
            target=(height * width * k, width * k),
            adds=accumulate,
        )
        self.spread.chain.spread(between, whole, grid)

    def _convolve_full(self, i: int, bias: bool, written: bool, acts: Sequence[tuple[str, int, float, float]]) -> None:
        stage = self.finish
        (conv,) = small_convs(1, self.k, self.window)
        attributes = Attributes([*([("sum", 1.0)] if written else []), *acts])
        target = partial(stage.external, "y")
        self._convolve(stage, i, conv, self._image(stage, i), bias, target, attributes)


def build(*form: Any) -> UpsampledConvPrimitive:
    """The primitives for a form; in float32 where oneDNN has no convolution in bfloat16."""
    if form[-1]:
        with suppress(NotServedError):
            return UpsampledConvPrimitive(*form)
    plain = (*form[:-1], False)
    return UpsampledConvPrimitive(*plain)
