"""conv2d_transpose and depthwise_conv2d_transpose."""

from __future__ import annotations

from oprack_onednn import _c
from oprack_onednn.library import LIBRARY
from oprack_onednn.memory import Weights, address, channels_last_desc, empty_image, image_desc, is_constant
from oprack_onednn.native import Attributes, MemoryDesc, NotServedError, PrimitiveDesc, dims, element_strides
from oprack_onednn.ops._shapes import pads_of
from oprack_onednn.plan import THREAD, Plan
from oprack_onednn.served import served


def filter_view(w, groups):
    """Filter [C, K / groups, kh, kw] as [K, C, kh, kw], or as [groups, K / groups, C / groups, kh, kw]."""
    if groups == 1:
        return w.transpose(1, 0, 2, 3)
    c, *rest = w.shape
    return w.reshape(groups, c // groups, *rest).transpose(0, 2, 1, 3, 4)


class ConvTransposePlan:
    """A transposed convolution of one shape, all of it in channels-last memory."""

    def __init__(
        self, x, w, strides, paddings, dilations, groups, algorithm, output_size, output_padding, bias, constant
    ):
        n, _, *spatial = x.shape
        ksize = w.shape[2:]
        if algorithm == "SAME":
            dilations = (1, 1)
        pads = pads_of(algorithm, paddings, spatial, ksize, strides)
        reach = [(s - 1) * t + d * (q - 1) + 1 for s, q, t, d in zip(spatial, ksize, strides, dilations, strict=True)]
        out = [r - a - b for r, (a, b) in zip(reach, pads, strict=True)]
        if output_size:
            out = list(output_size)
        elif output_padding:
            out = [o + e for o, e in zip(out, output_padding, strict=True)]
        before = [a for a, _ in pads]
        after = [r - a - o for r, a, o in zip(reach, before, out, strict=True)]
        if 0 in x.shape or 0 in w.shape or min(before) < 0 or min(out) < 1 or not w.flags.c_contiguous:
            raise NotServedError("negative padding, an empty tensor or a filter that is a view")
        self.shape = (n, w.shape[1] * groups, *out)
        source = channels_last_desc(x.shape)
        view = filter_view(w, groups)
        wsource = MemoryDesc.strided(view.shape, element_strides(view))
        row = MemoryDesc.strided((self.shape[1],))
        desc = PrimitiveDesc(
            "deconvolution_forward",
            LIBRARY.engine,
            _c.FORWARD_INFERENCE,
            _c.DECONVOLUTION_DIRECT,
            source,
            MemoryDesc.any(view.shape),
            row if bias else None,
            channels_last_desc(self.shape),
            dims(strides),
            dims(d - 1 for d in dilations),
            dims(before),
            dims(after),
            Attributes(),
        )
        plan = self.plan = Plan()
        given = plan.input(image_desc(x))
        wdesc = desc.desc(_c.QUERY_WEIGHTS_MD)
        self.weights = Weights(wsource, wdesc) if constant else None
        weights = plan.input(wdesc if constant else wsource)
        if not constant and wsource != wdesc:
            weights = plan.reorder(weights, wdesc)
        arguments = {_c.WEIGHTS: weights, _c.DST: plan.output(channels_last_desc(self.shape))}
        if bias:
            arguments[_c.BIAS] = plan.input(row)
        arguments[_c.SRC] = given if given.desc == source else plan.reorder(given, source)
        plan.add(desc, arguments)


@served("conv2d_transpose", "depthwise_conv2d_transpose")
def conv2d_transpose(
    Input, Filter, Bias=None, *, strides, paddings, dilations, groups, padding_algorithm, output_size, output_padding,
    data_format, ctx,
):  # fmt: skip
    if Bias is not None and not Bias.flags.c_contiguous:
        return NotImplemented
    x = Input.transpose(0, 3, 1, 2) if data_format == "NHWC" else Input
    constant = is_constant(Filter)
    attrs = (
        tuple(strides), tuple(paddings), tuple(dilations), groups, padding_algorithm, tuple(output_size),
        tuple(output_padding), Bias is not None, constant,
    )  # fmt: skip
    key = ("conv2d_transpose", x.shape, x.strides, Filter.shape, Filter.strides, attrs)
    found = THREAD.plan(key, ConvTransposePlan, x, Filter, *attrs)
    if found is None:
        return NotImplemented
    y = empty_image(found.shape)
    weights = address(Filter) if found.weights is None else found.weights.address(Filter)
    bias = () if Bias is None else (address(Bias),)
    found.plan.run(THREAD, address(x), weights, address(y), *bias)
    return y.transpose(0, 2, 3, 1) if data_format == "NHWC" else y
