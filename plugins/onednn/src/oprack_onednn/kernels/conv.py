"""conv2d and depthwise_conv2d."""

from __future__ import annotations

import numpy as np

from oprack_onednn import _c
from oprack_onednn.library import LIBRARY
from oprack_onednn.memory import Weights, address, channels_last_desc, empty_image, image_desc, is_constant
from oprack_onednn.native import Attributes, MemoryDesc, NotServedError, PrimitiveDesc, dims, element_strides
from oprack_onednn.plan import THREAD, Plan
from oprack_onednn.served import served


def pads_of(algorithm, paddings, spatial, ksize, strides):
    """(before, after) per dim of `conv2d` and the like."""
    if algorithm == "VALID":
        return [(0, 0)] * len(spatial)
    if algorithm == "SAME":
        total = [max((-(-x // s) - 1) * s + k - x, 0) for x, k, s in zip(spatial, ksize, strides, strict=True)]
        return [(t // 2, t - t // 2) for t in total]
    if len(paddings) == len(spatial):
        return [(p, p) for p in paddings]
    return [(paddings[2 * i], paddings[2 * i + 1]) for i in range(len(spatial))]


def grouped(shape, groups):
    """Filter dims as oneDNN wants them: [groups, K / groups, C / groups, kh, kw] when there is more than one group."""
    k, *rest = shape
    return (groups, k // groups, *rest) if groups > 1 else tuple(shape)


class ConvPlan:
    """A convolution of one shape: source and result in channels-last memory, weights as the primitive likes them."""

    def __init__(self, x, w, strides, paddings, dilations, groups, algorithm, constant):
        n, _, *spatial = x.shape
        k, _, *ksize = w.shape
        if algorithm == "SAME":
            dilations = [1] * len(spatial)
        pads = pads_of(algorithm, paddings, spatial, ksize, strides)
        if min(p for pair in pads for p in pair) < 0 or 0 in x.shape or 0 in w.shape or not w.flags.c_contiguous:
            raise NotServedError("negative padding, an empty tensor or a filter that is a view")
        out = [
            (s + a + b - d * (q - 1) - 1) // t + 1
            for s, (a, b), d, q, t in zip(spatial, pads, dilations, ksize, strides, strict=True)
        ]
        if min(out) < 1:
            raise NotServedError("an empty result")
        # oneDNN wants the size of the result to follow from the paddings exactly
        after = [
            (o - 1) * t + d * (q - 1) + 1 - s - a
            for s, (a, _), o, d, q, t in zip(spatial, pads, out, dilations, ksize, strides, strict=True)
        ]
        self.shape = (n, k, *out)
        source = channels_last_desc(x.shape)
        wshape = grouped(w.shape, groups)
        wsource = MemoryDesc.strided(wshape, element_strides(w.reshape(wshape)))
        desc = PrimitiveDesc(
            "convolution_forward",
            LIBRARY.engine,
            _c.FORWARD_INFERENCE,
            _c.CONVOLUTION_DIRECT,
            source,
            MemoryDesc.any(wshape),
            None,
            channels_last_desc(self.shape),
            dims(strides),
            dims(d - 1 for d in dilations),
            dims(a for a, _ in pads),
            dims(after),
            Attributes(),
        )
        if groups == x.shape[1] and "brg" in desc.impl:
            prefer_second(desc)
        plan = self.plan = Plan()
        given = plan.input(image_desc(x))
        inner = given if given.desc == source else plan.reorder(given, source)
        wdesc = desc.desc(_c.QUERY_WEIGHTS_MD)
        if constant:
            self.weights = Weights(wsource, wdesc)
            weights = plan.input(wdesc)
        else:
            self.weights = None
            raw = plan.input(wsource)
            weights = raw if wsource == wdesc else plan.reorder(raw, wdesc)
        result = plan.output(desc.desc(_c.QUERY_DST_MD))
        plan.add(desc, {_c.SRC: inner, _c.WEIGHTS: weights, _c.DST: result})

    def run(self, x, w):
        y = empty_image(self.shape)
        weights = self.weights.address(w) if self.weights is not None else address(w)
        self.plan.run(THREAD, address(x), weights, address(y))
        return y


class RowPlan:
    """A 1x1 convolution of 1x1 images: [n, c] times [c, k].

    Everything that follows is scaled by such products (squeeze and excitation), so their rounding counts: the sum over
    c is taken in parts, which are then added.
    """

    def __init__(self, x, w, constant):
        n, c, *_ = x.shape
        k = w.shape[0]
        self.shape = (n, k, 1, 1)
        parts = next(p for p in (16, 8, 4, 2, 1) if c % p == 0 and c // p >= 16)
        width = c // parts
        source = MemoryDesc.strided((parts, n, width), (width, c, 1))
        view = MemoryDesc.strided((parts, width, k), (width, 1, c))
        wanted = MemoryDesc.any((parts, width, k)) if constant else view
        result = MemoryDesc.strided((parts, n, k))
        desc = PrimitiveDesc("matmul", LIBRARY.engine, source, wanted, None, result, Attributes())
        chosen = desc.desc(_c.QUERY_WEIGHTS_MD)
        self.weights = Weights(view, chosen) if constant else None
        plan = self.plan = Plan()
        self._partial = (parts, n, k, 1, 1)
        plan.add(desc, {_c.SRC: plan.input(source), _c.WEIGHTS: plan.input(chosen), _c.DST: plan.output(result)})

    def run(self, x, w):
        partial = np.empty(self._partial, x.dtype)
        weights = self.weights.address(w) if self.weights is not None else address(w)
        self.plan.run(THREAD, address(x), weights, address(partial))
        return partial.sum(axis=0)


def build(x, w, strides, paddings, dilations, groups, algorithm, constant):
    """The plan that suits the shapes."""
    single = x.shape[2:] == (1, 1) == w.shape[2:] and groups == 1 and w.flags.c_contiguous and x.flags.c_contiguous
    if single and x.size and w.shape[1] >= 32 and (algorithm != "EXPLICIT" or not any(paddings)):
        return RowPlan(x, w, constant)
    return ConvPlan(x, w, strides, paddings, dilations, groups, algorithm, constant)


def prefer_second(desc):
    """jit_dw, which comes behind brgemm's depthwise convolution, is the faster one for float32."""
    if not desc.next_impl() or desc.slow:
        raise NotServedError(f"convolution: the second implementation is {desc.impl}")


@served("conv2d", "depthwise_conv2d")
def conv2d(Input, Filter, *, strides, paddings, dilations, groups, padding_algorithm, data_format, ctx):
    x = Input.transpose(0, 3, 1, 2) if data_format == "NHWC" else Input
    constant = is_constant(Filter)
    attrs = (tuple(strides), tuple(paddings), tuple(dilations), groups, padding_algorithm, constant)
    key = ("conv2d", x.shape, x.strides, Filter.shape, Filter.strides, attrs)
    plan = THREAD.plan(key, build, x, Filter, *attrs)
    if plan is None:
        return NotImplemented
    y = plan.run(x, Filter)
    return y.transpose(0, 2, 3, 1) if data_format == "NHWC" else y
