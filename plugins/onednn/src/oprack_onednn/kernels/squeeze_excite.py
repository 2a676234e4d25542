"""onednn_squeeze_excite: the mean of each channel and two small products after it, as one step in C."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from oprack.kernel import Array, KernelContext, KernelSpecialization, RequiredArray, kernel
from oprack.types import FLOATS
from oprack_nn.kernels.with_post_ops import after

from oprack_onednn.c.runner import RUNNER
from oprack_onednn.chain.memory import channels_last_desc, image_desc, is_channels_last
from oprack_onednn.chain.native_steps import NativeStep
from oprack_onednn.chain.parameters import is_constant
from oprack_onednn.chain.primitive_chain import PrimitiveChain
from oprack_onednn.chain.thread import THREAD
from oprack_onednn.dnnl import _c
from oprack_onednn.dnnl.layout import NotServedError
from oprack_onednn.dnnl.objects import MemoryDesc
from oprack_onednn.dnnl.operands import FLOAT
from oprack_onednn.kernels._steps import functions
from oprack_onednn.kernels.declare import onednn_kernel
from oprack_onednn.stretch.callsite import ShapedPrimitive, SizedPrimitive, attempt, call_site

if TYPE_CHECKING:
    from oprack_onednn.dnnl.objects import Memory

_BLOCK = 64  # pixels that are added up first, as in squeeze.c


_SLOTS = _c.WEIGHTS, _c.BIAS, _c.WEIGHTS_1, _c.SRC_1  # by which the step's memory is told apart


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
        parameters = reduce, reduce_bias, expand, expand_bias
        if 0 in x.shape or not all(p is None or (is_constant(p) and p.flags.c_contiguous) for p in parameters):
            raise NotServedError("an empty tensor, or parameters that may change")
        (n, c, h, w), reduced, outputs = x.shape, reduce.shape[0], expand.shape[0]
        if RUNNER.library is None:
            raise NotServedError("the compiled library is not there")
        # the step trusts these: a filter or bias of another size would lead it out of its memory
        expected = (reduced, c, 1, 1), (reduced,), (outputs, reduced, 1, 1), (outputs,)
        if any(p is not None and p.shape != s for p, s in zip(parameters, expected, strict=True)):
            raise NotServedError("filters of other channels or windows, or biases of other sizes")
        self.shape, self.weights, self.chain = (n, outputs, 1, 1), {}, PrimitiveChain()
        chain, strided = self.chain, MemoryDesc.strided
        source = chain.in_layout(chain.input(image_desc(x)), channels_last_desc(x.shape))
        memory: dict[int, Memory] = {_c.SRC: source}
        for slot, parameter in zip(_SLOTS, parameters, strict=True):
            if parameter is not None:
                memory[slot] = chain.input(strided(parameter.shape))
        memory[_c.DST] = chain.output(strided((n, outputs)))
        counts = reduce_bias is not None, expand_bias is not None, len(reduce_post_ops), len(expand_post_ops)
        self._settings = [c, reduced, outputs, *counts, *functions((*reduce_post_ops, *expand_post_ops))]
        chain.add(self._step(n, h * w), memory)

    def _step(self, images: int, pixels: int) -> NativeStep:
        """The step, whose scratch memory has the sums of the channels of each block of pixels, and what they become."""
        channels, reduced, *_ = self._settings
        room = FLOAT.itemsize * images * (-(-pixels // _BLOCK) * channels + reduced)
        return NativeStep("oprack_squeeze", (images, pixels, *self._settings), room)

    def resized(self, x: Array, *others: Array) -> ShapedPrimitive | None:
        channels, _, outputs, *_ = self._settings
        if x.ndim != 4 or 0 in x.shape or x.shape[1] != channels or not is_channels_last(x):
            return None
        n, _, h, w = x.shape
        chain = self.chain.resized(self._step(n, h * w), x.nbytes)
        return None if chain is None else SizedPrimitive(chain, (n, outputs, 1, 1))


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
