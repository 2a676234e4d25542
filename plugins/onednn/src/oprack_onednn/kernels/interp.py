"""Nearest and bilinear interpolation of images, where oneDNN looks at the same elements as Paddle."""

from __future__ import annotations

from collections.abc import Sequence

from oprack.kernel import Array

from oprack_onednn import _c
from oprack_onednn.declare import Limits, onednn_kernel
from oprack_onednn.descs import primitive_desc
from oprack_onednn.library import LIBRARY
from oprack_onednn.memory import channels_last_desc, empty_image, image_desc
from oprack_onednn.native import Attributes, NotServedError
from oprack_onednn.primitive_chain import THREAD, PrimitiveChain


class InterpPrimitive:
    """Resampling of one shape to [*, *, height, width]."""

    def __init__(self, x: Array, height: int, width: int, method: str) -> None:
        self.shape = (*x.shape[:2], height, width)
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


def target_size(
    spatial: tuple[int, ...], out_h: int, out_w: int, scale: Sequence[float] | float
) -> tuple[int, int] | None:
    """(height, width) when the factors are whole numbers, else None."""
    factors = [float(s) for s in (scale if isinstance(scale, list | tuple) else [scale])]
    if factors and all(f > 0 for f in factors):
        factors = factors * 2 if len(factors) == 1 else factors
        if any(f != int(f) for f in factors):
            return None
        return tuple(int(f) * s for f, s in zip(factors, spatial, strict=True))
    if out_h > 0 and out_w > 0 and out_h % spatial[0] == 0 and out_w % spatial[1] == 0:
        return out_h, out_w
    return None


@onednn_kernel("nearest_interp_v2", "bilinear_interp_v2", "nearest_interp", "bilinear_interp")
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
    if OutSize is not None or SizeTensor or Scale is not None or align_corners or X.ndim != 4:
        return NotImplemented
    if interp_method == "bilinear" and align_mode != 0:
        return NotImplemented
    last = data_layout != "NCHW"
    x = X.transpose(0, 3, 1, 2) if last else X
    size = target_size(x.shape[2:], out_h, out_w, scale)
    if size is None or tuple(size) == x.shape[2:] or x.shape[0] * x.shape[1] * size[0] * size[1] < Limits.moved:
        return NotImplemented
    found = THREAD.primitive(
        ("interp", x.shape, x.strides, size, interp_method), InterpPrimitive, x, *size, interp_method
    )
    if found is None:
        return NotImplemented
    y = empty_image(found.shape)
    found.chain.run(x, y)
    return y.transpose(0, 2, 3, 1) if last else y
