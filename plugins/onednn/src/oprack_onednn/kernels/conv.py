"""conv2d and depthwise_conv2d, and onednn_conv2d: a convolution with what follows it."""

from __future__ import annotations

import numpy as np
from oprack.kernel import kernel
from oprack.types import FLOATS

from oprack_onednn import _c
from oprack_onednn.kernels import activation, elementwise  # noqa: F401  (steps of a fused convolution)
from oprack_onednn.kernels._implementation import convolution
from oprack_onednn.kernels._steps import Step, after
from oprack_onednn.library import LIBRARY
from oprack_onednn.memory import Weights, address, channels_last_desc, empty_image, image_desc, is_constant
from oprack_onednn.native import Attributes, MemoryDesc, NotServedError, PrimitiveDesc, dims
from oprack_onednn.ops._shapes import conv_out, pads_of
from oprack_onednn.ops.post_ops import RESIDUAL, algorithm
from oprack_onednn.plan import THREAD, Plan
from oprack_onednn.served import plain_step, served, step


def grouped(shape, groups):
    """Filter dims as oneDNN wants them: [groups, K / groups, C / groups, kh, kw] when there is more than one group."""
    k, *rest = shape
    return (groups, k // groups, *rest) if groups > 1 else tuple(shape)


def chain(post_ops, residual=None, first=()):
    """(attributes of the primitive, index of the residual among the post-ops or None). first: what comes before."""
    parts, at = list(first), None
    for text in post_ops:
        if text == RESIDUAL:
            at = len(parts)
            parts.append(("binary", _c.BINARY_ADD, residual))
        else:
            name, alpha, beta = algorithm(text)
            parts.append(("eltwise", _c.ELTWISE[name], alpha, beta))
    return Attributes(parts), at


class ConvShape:
    """What a convolution's shapes and attributes come to: shape of the result, window and filter as oneDNN wants them.

    Raises NotServedError for what it has no answer to.
    """

    def __init__(self, x_shape, w, strides, paddings, dilations, groups, padding):
        n, _, *spatial = x_shape
        k, _, *ksize = w.shape
        if padding == "SAME":
            dilations = (1, 1)
        pads = pads_of(padding, paddings, spatial, ksize, strides)
        if min(p for pair in pads for p in pair) < 0 or 0 in x_shape or 0 in w.shape or not w.flags.c_contiguous:
            raise NotServedError("negative padding, an empty tensor or a filter that is a view")
        out = [conv_out(*s) for s in zip(spatial, ksize, pads, strides, dilations, strict=True)]
        if min(out) < 1:
            raise NotServedError("an empty result")
        # oneDNN wants the size of the result to follow from the paddings exactly
        behind = [
            (o - 1) * t + d * (q - 1) + 1 - s - a
            for s, (a, _), o, d, q, t in zip(spatial, pads, out, dilations, ksize, strides, strict=True)
        ]
        self.shape = (n, k, *out)
        self.window = (dims(strides), dims(d - 1 for d in dilations), dims(a for a, _ in pads), dims(behind))
        self.filter_shape = grouped(w.shape, groups)
        self.filter_desc = MemoryDesc.strided(self.filter_shape)
        self.depthwise, self.strides = groups == x_shape[1], tuple(strides)

    def forward(self, source, result, row, attributes):
        """The primitive descriptor; row: layout of the bias, or None."""
        arguments = (LIBRARY.engine, _c.FORWARD_INFERENCE, _c.CONVOLUTION_DIRECT, source)
        arguments = (*arguments, MemoryDesc.any(self.filter_shape), row, result, *self.window, attributes)
        return convolution(*arguments, outputs=self.shape[1], depthwise=self.depthwise, strides=self.strides)


class ConvPlan:
    """A convolution of one shape: source and result in channels-last memory, weights as the primitive likes them."""

    def __init__(self, x, w, residual, strides, paddings, dilations, groups, padding, constant, bias, post_ops):
        geo = ConvShape(x.shape, w, strides, paddings, dilations, groups, padding)
        self.shape = geo.shape
        if residual is not None and residual.shape != self.shape:
            raise NotServedError("a residual of another shape")
        source, result = channels_last_desc(x.shape), channels_last_desc(self.shape)
        row = MemoryDesc.strided((w.shape[0],)) if bias else None
        attributes, at = chain(post_ops, result)
        desc = geo.forward(source, result, row, attributes)
        plan = self.plan = Plan()
        given = plan.input(image_desc(x))
        raw, wdesc = geo.filter_desc, desc.desc(_c.QUERY_WEIGHTS_MD)
        self.weights = Weights(raw, wdesc) if constant else None
        weights = plan.input(wdesc if constant else raw)
        memory = {}
        if bias:
            memory[_c.BIAS] = plan.input(row)
        if at is not None:
            added = plan.input(image_desc(residual))
            memory[_c.POST_OP * (at + 1) | _c.SRC_1] = added if added.desc == result else plan.reorder(added, result)
        memory[_c.DST] = plan.output(result)
        memory[_c.SRC] = given if given.desc == source else plan.reorder(given, source)
        memory[_c.WEIGHTS] = weights if constant or raw == wdesc else plan.reorder(weights, wdesc)
        plan.add(desc, memory)

    def run(self, x, w, *others):
        """others: bias and residual, those that the plan has."""
        y = empty_image(self.shape)
        weights = self.weights.address(w) if self.weights is not None else address(w)
        self.plan.run(THREAD, address(x), weights, *map(address, others), address(y))
        return y


class RowPlan:
    """A 1x1 convolution of 1x1 images: [n, c] times [c, k].

    Everything that follows is scaled by such products (squeeze and excitation), so their rounding counts: the sum over
    c is taken in parts, which are then added.
    """

    def __init__(self, x, w, constant, bias, post_ops):
        n, c, *_ = x.shape
        k = w.shape[0]
        parts = next(p for p in (16, 8, 4, 2, 1) if c % p == 0 and c // p >= 16)
        width = c // parts
        source = MemoryDesc.strided((parts, n, width), (width, c, 1))
        view = MemoryDesc.strided((parts, width, k), (width, 1, c))
        wanted = MemoryDesc.any((parts, width, k)) if constant else view
        result = MemoryDesc.strided((parts, n, k))
        desc = PrimitiveDesc("matmul", LIBRARY.engine, source, wanted, None, result, Attributes())
        chosen = desc.desc(_c.QUERY_WEIGHTS_MD)
        self.weights = Weights(view, chosen) if constant else None
        self.bias, self.post_ops, self.shape = bias, post_ops, (parts, n, k, 1, 1)
        plan = self.plan = Plan()
        plan.add(desc, {_c.SRC: plan.input(source), _c.WEIGHTS: plan.input(chosen), _c.DST: plan.output(result)})

    def run(self, x, w, *others):
        """others: bias and residual, those that the plan has."""
        partial = np.empty(self.shape, x.dtype)
        weights = self.weights.address(w) if self.weights is not None else address(w)
        self.plan.run(THREAD, address(x), weights, address(partial))
        y = partial.sum(axis=0)
        if self.bias:
            y += others[0].reshape(1, -1, 1, 1)
        for text in self.post_ops:
            if text == RESIDUAL:
                y += others[-1]
            else:
                activation.run_in_place(y, *algorithm(text))
        return y


def build(x, w, residual, strides, paddings, dilations, groups, padding, constant, bias, post_ops):
    """The plan that suits the shapes."""
    single = x.shape[2:] == (1, 1) == w.shape[2:] and groups == 1 and w.flags.c_contiguous and x.flags.c_contiguous
    if single and x.size and w.shape[1] >= 32 and (padding != "EXPLICIT" or not any(paddings)):
        return RowPlan(x, w, constant, bias, post_ops)
    return ConvPlan(x, w, residual, strides, paddings, dilations, groups, padding, constant, bias, post_ops)


def find_plan(x, w, residual, strides, paddings, dilations, groups, padding, bias=False, post_ops=()):
    """The plan for these shapes and attributes; None when there is none."""
    attrs = (tuple(strides), tuple(paddings), tuple(dilations), groups, padding, is_constant(w), bias, tuple(post_ops))
    second = None if residual is None else (residual.shape, residual.strides)
    key = ("conv2d", x.shape, x.strides, w.shape, w.strides, second, attrs)
    return THREAD.plan(key, build, x, w, residual, *attrs)


@served("conv2d", "depthwise_conv2d")
def conv2d(Input, Filter, *, strides, paddings, dilations, groups, padding_algorithm, data_format, ctx):
    x = Input.transpose(0, 3, 1, 2) if data_format == "NHWC" else Input
    plan = find_plan(x, Filter, None, strides, paddings, dilations, groups, padding_algorithm)
    if plan is None:
        return NotImplemented
    y = plan.run(x, Filter)
    return y.transpose(0, 2, 3, 1) if data_format == "NHWC" else y


@served("onednn_conv2d")
def onednn_conv2d(
    Input, Filter, Bias=None, Residual=None, *, strides, paddings, dilations, groups, padding_algorithm, post_ops, ctx
):
    others = [a for a in (Bias, Residual) if a is not None]
    if Bias is None or Bias.flags.c_contiguous:
        attrs = (strides, paddings, dilations, groups, padding_algorithm)
        plan = find_plan(Input, Filter, Residual, *attrs, Bias is not None, post_ops)
        if plan is not None:
            return plan.run(Input, Filter, *others)
    return by_steps(Input, Filter, Bias, Residual, ctx.attrs, step)


@kernel("onednn_conv2d", place="cpu", dtypes=FLOATS)
def plain_conv2d(Input, Filter, Bias=None, Residual=None, *, ctx):
    return by_steps(Input, Filter, Bias, Residual, ctx.attrs, plain_step)


def by_steps(x, w, bias, residual, attrs, run):
    """The convolution, then what follows it."""
    own = {name: attrs[name] for name in ("strides", "paddings", "dilations", "groups", "padding_algorithm")}
    y = run("conv2d", {"Input": x, "Filter": w}, Step.of("conv2d", **own))
    return after(y, 1, bias, residual, attrs["post_ops"], run)
