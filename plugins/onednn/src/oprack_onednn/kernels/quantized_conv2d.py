"""onednn_quantized_conv2d: a convolution of bytes, with sums in 32 bits."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np
from oprack.kernel import Array, KernelContext, KernelSpecialization, kernel
from oprack.types import FLOATS
from oprack_nn.kernels.with_post_ops import convolution, own_attrs

from oprack_onednn.chain.descs import one_number, primitive_desc
from oprack_onednn.chain.memory import channels_last_desc, image_desc
from oprack_onednn.chain.parameters import Weights
from oprack_onednn.chain.primitive_chain import PrimitiveChain
from oprack_onednn.chain.thread import THREAD
from oprack_onednn.dnnl import _c
from oprack_onednn.dnnl.layout import NotServedError
from oprack_onednn.dnnl.library import LIBRARY
from oprack_onednn.dnnl.objects import Memory, MemoryDesc
from oprack_onednn.dnnl.operands import FLOAT, INT8
from oprack_onednn.kernels._conv_shape import ConvShape
from oprack_onednn.kernels._numbers import restored, serves_quantized, to_result
from oprack_onednn.kernels._steps import as_post_ops
from oprack_onednn.kernels.declare import onednn_kernel
from oprack_onednn.stretch.callsite import ShapedPrimitive, attempt, call_site, varying


class QuantizedConvPrimitive(ShapedPrimitive):
    """A convolution of one shape; source and result lie in channels-last memory.

    Args:
        input_step, output_step: As of the op.
    """

    def __init__(
        self,
        x: Array,
        w: Array,
        bias: bool,
        residual: Array | None,
        window: tuple[Any, ...],
        post_ops: tuple[str, ...],
        input_step: float,
        output_step: float,
    ) -> None:
        geo = ConvShape(x.shape, w, *window)
        self.shape, self.dtype = geo.shape, INT8 if output_step else FLOAT
        if residual is not None and residual.shape != self.shape:
            raise NotServedError("a residual of another shape")
        source, plain = channels_last_desc(x.shape).int8, channels_last_desc(self.shape)
        result = plain.int8 if output_step else plain
        row = MemoryDesc.strided((w.shape[0],))
        # one step for each channel of the result; those of groups lie in two dims
        scales = [(_c.SRC, 0), (_c.WEIGHTS, 0b11 if len(geo.filter_shape) > w.ndim else 0b1)]
        scales += [(_c.DST, 0)] if output_step else []
        attributes, at = as_post_ops(post_ops, plain, scales=scales)
        wanted = MemoryDesc.any(geo.filter_shape, _c.S8)
        kind = (LIBRARY.engine, _c.FORWARD_INFERENCE, _c.CONVOLUTION_DIRECT)
        arguments = (*kind, source, wanted, row if bias else None, result, *geo.window, attributes)
        desc = primitive_desc("convolution_forward", *arguments)
        chosen = desc.desc(_c.QUERY_WEIGHTS_MD)
        self.weights = {1: Weights(geo.filter_desc.int8, chosen)}
        chain = self.chain = PrimitiveChain()
        given = chain.input(image_desc(x))
        memory: dict[int, Memory] = {_c.WEIGHTS: chain.input(chosen), _c.SCALES | _c.WEIGHTS: chain.input(row)}
        if bias:
            memory[_c.BIAS] = chain.input(row)
        if at is not None:
            assert residual is not None
            added = chain.input(image_desc(residual))
            memory[_c.POST_OP * (at + 1) | _c.SRC_1] = added if added.desc == plain else chain.reorder(added, plain)
        memory[_c.DST] = chain.output(result)
        memory[_c.SRC] = chain.int8(given, source, input_step)
        memory[_c.SCALES | _c.SRC] = one_number(input_step)
        if output_step:
            memory[_c.SCALES | _c.DST] = one_number(output_step)
        chain.add(desc, memory)


def find_quantized(
    x: Array, w: Array, steps: Array, bias: Array | None, residual: Array | None, attrs: Mapping[str, Any]
) -> QuantizedConvPrimitive | None:
    """The primitive for these shapes and attributes; None when there is none."""
    if not serves_quantized(x, w, steps, bias):
        return None
    window = tuple(tuple(v) if isinstance(v, list) else v for v in own_attrs(attrs).values())
    more = (window, tuple(attrs["post_ops"]), attrs["input_step"], attrs["output_step"])
    second = None if residual is None else (residual.shape, residual.strides)
    key = ("quantized", x.dtype.char, x.shape, x.strides, w.shape, bias is not None, second, more)
    return THREAD.primitive(key, QuantizedConvPrimitive, x, w, bias is not None, residual, *more)


def _specialize(call: KernelSpecialization) -> Callable[..., Any]:
    attrs = call.attrs

    def find(
        x: Array, w: Array, steps: Array, bias: Array | None = None, residual: Array | None = None
    ) -> QuantizedConvPrimitive | None:
        return find_quantized(x, w, steps, bias, residual, attrs)

    free, dtypes = varying(call, {"Input": 0, "Residual": 4})
    return call_site(find, free, dtypes=dtypes)


@onednn_kernel("onednn_quantized_conv2d", specialize=_specialize, unread=("Input", "Filter"))
def onednn_quantized_conv2d(
    Input: Array,
    Filter: Array,
    FilterStep: Array,
    Bias: Array | None = None,
    Residual: Array | None = None,
    *,
    ctx: KernelContext,
) -> Array:
    given = Input, Filter, FilterStep, Bias, Residual
    return attempt(partial(find_quantized, attrs=ctx.attrs), *given)


@kernel("onednn_quantized_conv2d", place="cpu", dtypes=FLOATS)
def reference_quantized_conv2d(
    Input: Array,
    Filter: Array,
    FilterStep: Array,
    Bias: Array | None = None,
    Residual: Array | None = None,
    *,
    ctx: KernelContext,
) -> Array:
    attrs = ctx.attrs
    x = restored(Input, attrs["input_step"], FilterStep.dtype)
    w = Filter.astype(FilterStep.dtype) * FilterStep.reshape(-1, 1, 1, 1)
    return to_result(convolution(x, np.ascontiguousarray(w), Bias, Residual, attrs, ctx), attrs["output_step"])
