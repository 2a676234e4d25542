"""onednn_squeeze_excite: the mean of each channel and two small products after it, as one chain."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from oprack.kernel import Array, KernelContext, KernelSpecialization, RequiredArray, kernel
from oprack.types import FLOATS
from oprack_nn.kernels.with_post_ops import after

from oprack_onednn.chain.descs import primitive_desc
from oprack_onednn.chain.memory import channels_last_desc, image_desc
from oprack_onednn.chain.parameters import is_constant
from oprack_onednn.chain.primitive_chain import PrimitiveChain
from oprack_onednn.chain.thread import THREAD
from oprack_onednn.dnnl import _c
from oprack_onednn.dnnl.layout import NotServedError
from oprack_onednn.dnnl.library import LIBRARY
from oprack_onednn.dnnl.objects import Attributes, MemoryDesc, dims
from oprack_onednn.kernels._product import add_product
from oprack_onednn.kernels.declare import onednn_kernel
from oprack_onednn.stretch.callsite import ShapedPrimitive, attempt, call_site

if TYPE_CHECKING:
    from oprack_onednn.dnnl.objects import Memory
    from oprack_onednn.dnnl.operands import External

# Sums over more than this many pixels go row by row first: in parallel, and with rounding errors that do not pile up.
_LONG = 256


def add_mean(chain: PrimitiveChain, given: External, shape: tuple[int, ...]) -> Memory:
    """Append the mean over H and W of the images in memory `given`; returns its memory, [N, C]."""
    n, c, h, w = shape
    source = channels_last_desc(shape)
    memory = given if given.desc == source else chain.reorder(given, source)
    for high, wide in [(1, w), (h, 1)] if h > 1 and h * w > _LONG else [(h, w)]:
        h, w = h // high, w // wide
        target, step = channels_last_desc((n, c, h, w)), dims((high, wide))
        window = (step, step, dims((0, 0)), dims((0, 0)), dims((0, 0)))
        arguments = (_c.FORWARD_INFERENCE, _c.POOLING_AVG_EXCLUDE_PADDING, memory.desc, target, *window, Attributes())
        result = chain.temporary(target)
        chain.add(primitive_desc("pooling_forward", LIBRARY.engine, *arguments), {_c.SRC: memory, _c.DST: result})
        memory = result
    return chain.alias(memory, MemoryDesc.strided((n, c)))


class SqueezePrimitive(ShapedPrimitive):
    """One shape of X and of the parameters."""

    def __init__(
        self,
        x: Array,
        reduce: Array,
        reduce_bias: Array | None,
        expand: Array,
        expand_bias: Array | None,
        reduce_post_ops: tuple[str, ...],
        expand_post_ops: tuple[str, ...],
    ) -> None:
        given = [p for p in (reduce, reduce_bias, expand, expand_bias) if p is not None]
        if 0 in x.shape or not all(is_constant(p) and p.flags.c_contiguous for p in given):
            raise NotServedError("an empty tensor, or parameters that may change")
        n = x.shape[0]
        self.shape, self.weights = (n, expand.shape[0], 1, 1), {}
        self.chain = PrimitiveChain()
        memory = add_mean(self.chain, self.chain.input(image_desc(x)), x.shape)
        memory = add_product(self.chain, self.weights, memory, n, reduce, reduce_bias is not None, reduce_post_ops)
        biased = expand_bias is not None
        add_product(self.chain, self.weights, memory, n, expand, biased, expand_post_ops, last=True)


def _find(attrs: Mapping[str, Any], x: Array, *parameters: Array | None) -> SqueezePrimitive | None:
    """The primitive for X and Reduce, ReduceBias, Expand, ExpandBias; None when there is none."""
    if any(b is not None and b.ndim != 1 for b in parameters[1::2]):
        return None
    post_ops = (tuple(attrs["reduce_post_ops"]), tuple(attrs["expand_post_ops"]))
    forms = tuple(None if p is None else (p.shape, is_constant(p)) for p in parameters)
    return THREAD.primitive(
        ("squeeze", x.shape, x.strides, forms, post_ops), SqueezePrimitive, x, *parameters, *post_ops
    )


def _specialize(call: KernelSpecialization) -> Callable[..., Any]:
    return call_site(lambda *arrays: _find(call.attrs, *arrays, *[None] * (5 - len(arrays))))


@onednn_kernel("onednn_squeeze_excite", specialize=_specialize)
def squeeze_excite(
    X: Array,
    Reduce: Array,
    ReduceBias: Array | None = None,
    Expand: RequiredArray = None,
    ExpandBias: Array | None = None,
    *,
    ctx: KernelContext,
) -> Array:
    return attempt(partial(_find, ctx.attrs), X, Reduce, ReduceBias, Expand, ExpandBias)


@kernel("onednn_squeeze_excite", place="cpu", dtypes=FLOATS)
def reference_squeeze_excite(
    X: Array,
    Reduce: Array,
    ReduceBias: Array | None = None,
    Expand: RequiredArray = None,
    ExpandBias: Array | None = None,
    *,
    ctx: KernelContext,
) -> Array:
    return by_steps(X, Reduce, ReduceBias, Expand, ExpandBias, ctx.attrs, ctx)


def by_steps(
    x: Array,
    reduce: Array,
    reduce_bias: Array | None,
    expand: Array,
    expand_bias: Array | None,
    attrs: Mapping[str, Any],
    ctx: KernelContext,
) -> Array:
    """The ops that it stands for, one by one."""
    y = ctx.run_op("pool2d", {"X": x}, {"pooling_type": "avg", "ksize": [1, 1], "adaptive": True})
    y = ctx.run_op("conv2d", {"Input": y, "Filter": reduce})
    y = after(y, 1, reduce_bias, None, attrs["reduce_post_ops"], ctx)
    y = ctx.run_op("conv2d", {"Input": y, "Filter": expand})
    return after(y, 1, expand_bias, None, attrs["expand_post_ops"], ctx)
