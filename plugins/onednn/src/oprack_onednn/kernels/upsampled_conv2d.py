"""onednn_upsampled_conv2d: convolutions at each map's own resolution, whose results are spread over the whole.

What belongs to one image alone, scales and 1x1 convolutions, is multiplied into the weights instead of the maps.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np
from oprack.kernel import Array, KernelContext, kernel
from oprack.types import FLOATS
from oprack_nn.kernels.with_post_ops import after
from oprack_nn.ops.precision import is_narrow

from oprack_onednn.chain.memory import Outlet, last_strides
from oprack_onednn.chain.parameters import is_constant
from oprack_onednn.chain.primitive_chain import BoundChain, run_all
from oprack_onednn.chain.thread import THREAD, PerThread
from oprack_onednn.dnnl.layout import NotServedError
from oprack_onednn.dnnl.library import LIBRARY
from oprack_onednn.dnnl.operands import FLOAT, OperandError
from oprack_onednn.kernels import activation
from oprack_onednn.kernels._steps import algorithm
from oprack_onednn.kernels._upsampled_conv2d import EXPANDED, Source, UpsampledConvPrimitive, build
from oprack_onednn.kernels.declare import onednn_kernel

if TYPE_CHECKING:
    from oprack_onednn.chain.primitive_chain import PrimitiveChain

# From 3x3 taps: what the first and last row, the first and last column, and their four corners miss; and all.
_WINDOW = np.eye(9, dtype=np.float32).reshape(3, 3, 9)
_BORDER = np.stack(
    [
        *(_WINDOW[0].sum(0), _WINDOW[2].sum(0), _WINDOW[:, 0].sum(0), _WINDOW[:, 2].sum(0)),
        *(_WINDOW[0, 0], _WINDOW[0, 2], _WINDOW[2, 0], _WINDOW[2, 2], _WINDOW.sum((0, 1))),
    ]
)
_WHOLE = np.ones((1, 1), np.float32)


class Maps:
    """What the inputs of the op are to each map: x, w, and its projection, shift and scale or None."""

    def __init__(
        self,
        attrs: Mapping[str, Any],
        X: Sequence[Array],
        Filter: Sequence[Array],
        Bias: Array | None = None,
        Project: Sequence[Array] = (),
        Shift: Sequence[Array] = (),
        Scale: Sequence[Array] = (),
    ) -> None:
        def by_map(values: Sequence[Array], which: Sequence[int]) -> list[Array | None]:
            return [None if i < 0 else values[i] for i in which]

        self.xs, self.ws, self.bias, self.factors = X, Filter, Bias, attrs["factors"]
        self.projects = by_map(Project, attrs["projects"])
        self.shifts = by_map(Shift, attrs["shifts"])
        self.scales = by_map(Scale, attrs["scales"])
        self.parameters = (*Filter, *Project, *Shift, *(() if Bias is None else (Bias,)))

    def primitive(self, post_ops: Sequence[str], narrow: bool) -> UpsampledConvPrimitive | None:
        """The primitive for these shapes; None when there is none. narrow: whether factors are rounded to bfloat16."""
        if not self._is_served():
            return None
        outputs, _, window, _ = self.ws[0].shape
        maps = zip(self.xs, self.ws, self.factors, self.projects, self.shifts, self.scales, strict=True)
        sources = tuple(
            Source(
                *(x.shape, x.strides, factor, w.shape[1]),
                "project" if project is not None else "scale" if scale is not None else "",
                *(shift is not None, is_constant(w)),
            )
            for x, w, factor, project, shift, scale in maps
        )
        bias = self.bias is not None or any(s.shift for s in sources)
        form = (sources, outputs, window, bias, tuple(post_ops), narrow)
        return THREAD.primitive(("upsampled_conv2d", *form), build, *form)

    def _is_served(self) -> bool:
        """Whether ranks, dtypes and sizes are those that the op's rule and the chain count on."""
        for x, w, project, shift, scale in zip(self.xs, self.ws, self.projects, self.shifts, self.scales, strict=True):
            if (shift is not None and project is None) or x.ndim != 4:
                return False
            if scale is not None and scale.shape != (x.shape[0], w.shape[1], 1, 1):
                return False
        scales = [s for s in self.scales if s is not None]
        if any(a.dtype != FLOAT for a in (*self.xs, *self.parameters, *scales)):
            return False
        return all(p.flags.c_contiguous for p in self.parameters) and self._filters_fit()

    def _filters_fit(self) -> bool:
        outputs, _, window, _ = self.ws[0].shape
        if any(w.shape[:1] + w.shape[2:] != (outputs, window, window) for w in self.ws) or window not in (1, 3):
            return False
        return self.bias is None or self.bias.shape == (outputs,)


class _Weigher:
    """Weights of one map for an image: what does not depend on the image, times what does; for images of any size."""

    def __init__(
        self, stage: PrimitiveChain, source: Source, parameters: tuple[Array, Array | None, Array | None], keep: bool
    ) -> None:
        self.parameters = w, project, shift = parameters
        self.rows = EXPANDED((w,), source.factor)
        self.weighted = np.empty((len(self.rows), source.columns), FLOAT)
        if project is None:
            self.base, self.second = None, np.empty(source.channels, FLOAT)
        else:
            self.base = project[:, :, 0, 0] if shift is None else np.column_stack([project[:, :, 0, 0], shift])
            self.second = np.array(self.base, FLOAT, order="C")
        fixed = [self.rows, self.second, self.weighted]
        self.calls: list[tuple[BoundChain, Sequence[Array]]]
        self.calls = [(BoundChain(stage, fixed), ())] if keep else [(stage.bound(), fixed)]

    def weigh(self, scale: Array | None) -> list[tuple[BoundChain, Sequence[Array]]]:
        """The call that makes the weights, as run_all takes it. scale: [C], or None."""
        if self.base is None:
            self.second[:] = scale
        elif scale is not None:
            np.multiply(self.base, scale[:, None], out=self.second)
        return self.calls


_NONE = object()  # nothing can be bound


class BoundMaps:
    """A chain with the parameters of an op.

    Args:
        keep: Whether they are constant, so that their addresses are set once.
        weighers: Those that the op has for other shapes, by thread and map; new ones are added.
    """

    def __init__(self, chain: UpsampledConvPrimitive, maps: Maps, keep: bool, weighers: PerThread) -> None:
        self.chain, self.parameters, self.bias = chain, maps.parameters, maps.bias
        self.weighers: dict[int, _Weigher] = {}
        operands: dict[Any, Array] = {}
        for i, source in enumerate(chain.sources):
            if source.kind:
                parameters = (maps.ws[i], maps.projects[i], maps.shifts[i])
                found = weighers[THREAD.cache_key, i]
                if found is None or any(a is not b for a, b in zip(found.parameters, parameters, strict=True)):
                    found = _Weigher(chain.weigh(source), source, parameters, keep)
                    weighers.keep((THREAD.cache_key, i), found)
                self.weighers[i] = found
                rows = found.weighted
            else:
                rows = EXPANDED((maps.ws[i],), source.factor)
            operands["rows", i] = rows
            operands |= {key: p.of(rows) for key, p in chain.packed.items() if key[1] == i}
        self.tiles = {count: np.empty((count, chain.k), FLOAT) for count in chain.tiled}
        operands |= {("bias", count): tile for count, tile in self.tiles.items()}
        if not chain.shifted:
            self._set_bias(maps.bias)
        self.spread, self.finish = (stage.bound(operands, keep) for stage in (chain.spread, chain.finish))
        self.take = Outlet(chain.shape, tuple(FLOAT.itemsize * s for s in last_strides(chain.shape))).take

    def _set_bias(self, row: Array | None) -> None:
        for tile in self.tiles.values():
            tile[:] = row

    def run(self, maps: Maps) -> Array:
        """The result for the maps' images and scales."""
        chain, (y, _) = self.chain, self.take()
        images = y.transpose(0, 2, 3, 1)
        for image in range(0, chain.shape[0], chain.images):
            part = slice(image, image + chain.images)
            found: dict[Any, Array] = {("x", i): x[part] for i, x in enumerate(maps.xs)}
            found["y"] = y[part]
            calls = []
            for i, weigher in self.weighers.items():
                scale = maps.scales[i]
                calls += weigher.weigh(None if scale is None else scale[image].reshape(-1))
            if not chain.shifted:
                calls += self.spread(found)
            else:
                # the bias follows from weights, so they have to be there
                run_all(calls)
                self._run_shifted(images[image], found)
                calls = []
            run_all([*calls, *self.finish(found)])
        for text in chain.later:
            activation.run_in_place(y, *algorithm(text))
        return y

    def _run_shifted(self, y: Array, found: Mapping[Any, Array]) -> None:
        """Shifts are constant maps: part of the bias, but for the border, where the padding is no part of them."""
        chain = self.chain
        count = chain.window**2
        taps: Any = sum(
            self.weighers[i].weighted[: count * chain.k, -1] for i, s in enumerate(chain.sources) if s.shift
        )
        *border, whole = (_BORDER if count == 9 else _WHOLE) @ taps.reshape(count, chain.k)
        self._set_bias(whole if self.bias is None else whole + self.bias)
        if chain.spread.memory:
            run_all(self.spread(found))
        else:
            y[:] = 0
        if not border:
            return
        lines = (y[0], y[-1], y[:, 0], y[:, -1])
        corners = (y[0, 0], y[0, -1], y[-1, 0], y[-1, -1])
        for part, value in zip(lines, border[:4], strict=True):
            part -= value
        for part, value in zip(corners, border[4:], strict=True):
            part += value


def _run(attrs: Mapping[str, Any], *arrays: Any) -> Array:
    maps = Maps(attrs, *arrays)
    chain = maps.primitive(attrs["post_ops"], is_narrow(attrs)) if LIBRARY.usable() else None
    if chain is not None:
        chain.compile_ahead()  # while parameters are packed
        with suppress(OperandError):
            return BoundMaps(chain, maps, False, PerThread()).run(maps)
    return NotImplemented


class _Site:
    """One op of a program: its chains for each shape that it meets, with constant parameters set once."""

    def __init__(self, attrs: Mapping[str, Any]) -> None:
        self._attrs, self._entries, self._weighers = attrs, PerThread(), PerThread()

    def bound(self, maps: Maps) -> BoundMaps | None:
        """The chains for the maps' shapes and parameters; None when there are none."""
        key: tuple[Any, ...] = (THREAD.cache_key, *[(x.shape, x.strides) for x in maps.xs])
        key += tuple([(s.shape, s.dtype) for s in maps.scales if s is not None])
        bound = self._entries[key]
        if bound is _NONE:
            return None
        if bound is None or any(a is not b for a, b in zip(bound.parameters, maps.parameters, strict=True)):
            chain, bound = maps.primitive(self._attrs["post_ops"], is_narrow(self._attrs)), None
            if chain is not None and all(is_constant(p) for p in maps.parameters):
                with suppress(OperandError):
                    bound = BoundMaps(chain, maps, True, self._weighers)
            self._entries.keep(key, _NONE if bound is None else bound)
        return bound

    def __call__(self, *arrays: Any) -> Array:
        if not THREAD.ready():
            return _run(self._attrs, *arrays)
        maps = Maps(self._attrs, *arrays)
        bound = self.bound(maps)
        if bound is not None:
            with suppress(NotServedError):
                return bound.run(maps)
        return _run(self._attrs, *arrays)

    def prepare(self, *arrays: Any) -> Array | None:
        """Bind the chains for arrays like these, and have them compiled; returns a result that nobody computed."""
        bound = self.bound(Maps(self._attrs, *arrays)) if THREAD.ready() else None
        if bound is None:
            return None
        bound.chain.compile_ahead()
        return bound.take()[0]


@onednn_kernel("onednn_upsampled_conv2d", specialize=lambda call: _Site(call.attrs))
def upsampled_conv2d(
    X: list[Array],
    Filter: list[Array],
    Bias: Array | None = None,
    Project: Sequence[Array] = (),
    Shift: Sequence[Array] = (),
    Scale: Sequence[Array] = (),
    *,
    ctx: KernelContext,
) -> Array:
    return _run(ctx.attrs, X, Filter, Bias, Project, Shift, Scale)


@kernel("onednn_upsampled_conv2d", place="cpu", dtypes=FLOATS)
def reference_upsampled_conv2d(
    X: list[Array],
    Filter: list[Array],
    Bias: Array | None = None,
    Project: Sequence[Array] = (),
    Shift: Sequence[Array] = (),
    Scale: Sequence[Array] = (),
    *,
    ctx: KernelContext,
) -> Array:
    maps = Maps(ctx.attrs, X, Filter, Bias, Project, Shift, Scale)
    return by_steps(maps, ctx.attrs["post_ops"], ctx)


def by_steps(maps: Maps, post_ops: Sequence[str], ctx: KernelContext) -> Array:
    """One map after the other: 1x1 convolution, scale, repeated pixels, convolution; then the sum of all."""
    total: Any = None
    padded = {"paddings": [maps.ws[0].shape[2] // 2] * 2}
    parts = zip(maps.xs, maps.ws, maps.projects, maps.shifts, maps.scales, maps.factors, strict=True)
    for x, w, project, shift, scale, factor in parts:
        if project is not None:
            x = after(ctx.run_op("conv2d", {"Input": x, "Filter": project}), 1, shift, None, [], ctx)
        if scale is not None:
            x = ctx.run_op("elementwise_mul", {"X": x, "Y": scale})
        if factor > 1:
            x = x.repeat(factor, axis=2).repeat(factor, axis=3)
        y = ctx.run_op("conv2d", {"Input": x, "Filter": w}, padded)
        total = y if total is None else ctx.run_op("elementwise_add", {"X": total, "Y": y})
    return after(total, 1, maps.bias, None, post_ops, ctx)
