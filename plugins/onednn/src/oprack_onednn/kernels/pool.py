"""pool2d: sliding windows, and adaptive ones that all have one size."""

from __future__ import annotations

from oprack_onednn import _c
from oprack_onednn.library import LIBRARY
from oprack_onednn.memory import address, channels_last_desc, empty_image, image_desc
from oprack_onednn.native import Attributes, NotServedError, PrimitiveDesc, dims
from oprack_onednn.ops._shapes import pads_of
from oprack_onednn.plan import THREAD, Plan
from oprack_onednn.served import Limits, served


class PoolPlan:
    """Pooling of one shape."""

    def __init__(self, x, kind, ksize, strides, paddings, algorithm, is_global, ceil_mode, exclusive, adaptive):
        n, c, *spatial = x.shape
        if 0 in x.shape:
            raise NotServedError("an empty tensor")
        pads = [(0, 0), (0, 0)]
        if is_global:
            ksize, strides, out = spatial, (1, 1), (1, 1)
        elif adaptive:
            if kind == "max" or any(s % k for s, k in zip(spatial, ksize, strict=True)):
                raise NotServedError("windows of several sizes")
            out = tuple(ksize)
            ksize = strides = tuple(s // k for s, k in zip(spatial, ksize, strict=True))
        else:
            pads = pads_of(algorithm, paddings, spatial, ksize, strides)
            extra = [s - 1 if ceil_mode else 0 for s in strides]
            out = tuple(
                (s + a + b - k + e) // t + 1
                for s, (a, b), k, t, e in zip(spatial, pads, ksize, strides, extra, strict=True)
            )
        before = [a for a, _ in pads]
        # oneDNN wants the size of the result to follow from the paddings exactly
        after = [(o - 1) * t + k - s - a for s, a, o, k, t in zip(spatial, before, out, ksize, strides, strict=True)]
        if min(before) < 0 or min(out) < 1 or any(e >= k for e, k in zip((*before, *after), ksize * 2, strict=True)):
            raise NotServedError("windows that see nothing")
        algorithm = _c.POOLING_MAX
        if kind == "avg":
            algorithm = _c.POOLING_AVG_EXCLUDE_PADDING
            if not exclusive and not adaptive and any(before) | any(a > 0 for a in after):
                # Paddle counts padding as wide behind as in front, and nothing beyond it
                if after != before:
                    raise NotServedError("padding that differs between the sides counts")
                algorithm = _c.POOLING_AVG_INCLUDE_PADDING
        self.shape = (n, c, *out)
        source = channels_last_desc(x.shape)
        desc = PrimitiveDesc(
            "pooling_forward",
            LIBRARY.engine,
            _c.FORWARD_INFERENCE,
            algorithm,
            source,
            channels_last_desc(self.shape),
            dims(strides),
            dims(ksize),
            dims((0, 0)),
            dims(before),
            dims(after),
            Attributes(),
        )
        plan = self.plan = Plan()
        given = plan.input(image_desc(x))
        inner = given if given.desc == source else plan.reorder(given, source)
        plan.add(desc, {_c.SRC: inner, _c.DST: plan.output(desc.desc(_c.QUERY_DST_MD))})


@served("pool2d")
def pool(
    X, *, pooling_type, ksize, strides, paddings, padding_algorithm, global_pooling, ceil_mode, exclusive, adaptive,
    data_format, ctx,
):  # fmt: skip
    if X.size < Limits.eltwise or X.ndim != 4:
        return NotImplemented
    last = data_format == "NHWC"
    x = X.transpose(0, 3, 1, 2) if last else X
    attrs = (
        pooling_type, tuple(ksize), tuple(strides), tuple(paddings), padding_algorithm, global_pooling, ceil_mode,
        exclusive, adaptive,
    )  # fmt: skip
    found = THREAD.plan(("pool2d", x.shape, x.strides, attrs), PoolPlan, x, *attrs)
    if found is None:
        return NotImplemented
    y = empty_image(found.shape)
    found.plan.run(THREAD, address(x), address(y))
    return y.transpose(0, 2, 3, 1) if last else y
