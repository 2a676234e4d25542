"""Nearest and bilinear interpolation of images, where oneDNN looks at the same elements as Paddle."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from oprack.kernel import Array, KernelSpecialization

from oprack_onednn.chain.descs import primitive_desc
from oprack_onednn.chain.memory import channels_last_desc, image_desc, is_channels_last
from oprack_onednn.chain.primitive_chain import PrimitiveChain
from oprack_onednn.chain.thread import THREAD
from oprack_onednn.dnnl import _c
from oprack_onednn.dnnl.layout import NotServedError
from oprack_onednn.dnnl.library import LIBRARY
from oprack_onednn.dnnl.objects import Attributes
from oprack_onednn.kernels.declare import Limits, onednn_kernel
from oprack_onednn.stretch.callsite import ShapedPrimitive, attempt, call_site
from oprack_onednn.stretch.stretch import joins


class InterpPrimitive(ShapedPrimitive):
    """Resampling of one shape to [*, *, height, width]."""

    def __init__(self, x: Array, height: int, width: int, method: str) -> None:
        self.shape, self.weights = (*x.shape[:2], height, width), {}
        if 0 in self.shape:
            raise NotServedError("an empty tensor")
        algorithm = _c.RESAMPLING_NEAREST if method == "nearest" else _c.RESAMPLING_LINEAR
        source, target = channels_last_desc(x.shape), channels_last_desc(self.shape)
        desc = primitive_desc(
            "resampling_forward",
            LIBRARY.engine,
            _c.FORWARD_INFERENCE,
            algorithm,
            None,
            source,
            target,
            Attributes(),
        )
        chain = self.chain = PrimitiveChain()
        given = chain.input(image_desc(x))
        inner = given if given.desc == source else chain.reorder(given, source)
        chain.add(desc, {_c.SRC: inner, _c.DST: chain.output(target)})


def target_size(spatial: tuple[int, ...], out_h: int, out_w: int, scale: Any) -> tuple[int, int] | None:
    """(height, width) when the factors are whole numbers, else None."""
    factors = [float(s) for s in (scale if isinstance(scale, list | tuple) else [scale])]
    if factors and all(f > 0 for f in factors):
        factors = factors * 2 if len(factors) == 1 else factors
        if any(f != int(f) for f in factors):
            return None
        high, wide = (int(f) * s for f, s in zip(factors, spatial, strict=True))
        return high, wide
    if out_h > 0 and out_w > 0 and out_h % spatial[0] == 0 and out_w % spatial[1] == 0:
        return out_h, out_w
    return None


def _find(x: Array, method: str, out_h: int, out_w: int, scale: float | Sequence[float]) -> InterpPrimitive | None:
    """The primitive for images [N, C, H, W]; None when there is none."""
    size = target_size(x.shape[2:], out_h, out_w, scale) if x.ndim == 4 else None
    if size is None or tuple(size) == x.shape[2:]:
        return None
    # a small image of this library stays here, since NumPy would end what runs in one call
    if x.shape[0] * x.shape[1] * size[0] * size[1] < Limits.moved and not is_channels_last(x):
        return None
    return THREAD.primitive(("interp", x.shape, x.strides, size, method), InterpPrimitive, x, *size, method)


def _looks_as_paddle(method: str, align_corners: bool, align_mode: int) -> bool:
    """Whether oneDNN takes its samples where Paddle does."""
    return not align_corners and (method != "bilinear" or align_mode == 0)


def _specialize(call: KernelSpecialization) -> Callable[..., Any] | None:
    """Images in the program's order of dims, of a size that the attributes tell."""
    attrs = call.attrs
    told = any(call.has_input(slot) for slot in ("OutSize", "SizeTensor", "Scale")) or attrs["data_layout"] != "NCHW"
    if told or not _looks_as_paddle(*(attrs[name] for name in ("interp_method", "align_corners", "align_mode"))):
        return None
    size = [attrs[name] for name in ("interp_method", "out_h", "out_w", "scale")]
    site = call_site(lambda x: _find(x, *size))

    def interp(X: Array, OutSize: None = None, SizeTensor: Sequence[Array] = (), Scale: None = None) -> Any:
        return site(X)

    return joins(interp, replace(site.joinable, arrange=lambda x, *absent: (x,)))


@onednn_kernel("nearest_interp_v2", "bilinear_interp_v2", "nearest_interp", "bilinear_interp", specialize=_specialize)
def interp(
    X: Array,
    OutSize: Array | None = None,
    SizeTensor: Sequence[Array] = (),
    Scale: Array | None = None,
    *,
    data_layout: str,
    interp_method: str,
    align_corners: bool,
    align_mode: int,
    out_h: int,
    out_w: int,
    scale: float | list[float],
) -> Array:
    if OutSize is not None or SizeTensor or Scale is not None or X.ndim != 4:
        return NotImplemented
    if not _looks_as_paddle(interp_method, align_corners, align_mode):
        return NotImplemented
    last = data_layout != "NCHW"
    y = attempt(lambda x: _find(x, interp_method, out_h, out_w, scale), X.transpose(0, 3, 1, 2) if last else X)
    return y.transpose(0, 2, 3, 1) if last and y is not NotImplemented else y
