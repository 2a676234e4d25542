"""onednn_squeeze_excite: the mean of each channel and two small products after it, as one plan."""

from __future__ import annotations

import numpy as np
from oprack.kernel import kernel
from oprack.types import FLOATS

from oprack_onednn import _c
from oprack_onednn.kernels import activation, conv, pool  # noqa: F401  (steps of the op)
from oprack_onednn.kernels._steps import Step, after
from oprack_onednn.kernels.conv import chain
from oprack_onednn.library import LIBRARY
from oprack_onednn.memory import Weights, address, channels_last_desc, empty_image, image_desc, is_constant
from oprack_onednn.native import Attributes, Memory, MemoryDesc, NotServedError, PrimitiveDesc, call, dims
from oprack_onednn.plan import THREAD, Plan
from oprack_onednn.served import plain_step, served, step


def add_mean(plan, given, shape):
    """Append the mean over H and W of the images in memory `given`; returns its memory, [N, C]."""
    n, c, h, w = shape
    source, target = channels_last_desc(shape), channels_last_desc((n, c, 1, 1))
    memory = given if given.desc == source else plan.reorder(given, source)
    window = (dims((1, 1)), dims((h, w)), dims((0, 0)), dims((0, 0)), dims((0, 0)))
    arguments = (_c.FORWARD_INFERENCE, _c.POOLING_AVG_EXCLUDE_PADDING, source, target, *window, Attributes())
    result = plan.temporary(target)
    plan.add(PrimitiveDesc("pooling_forward", LIBRARY.engine, *arguments), {_c.SRC: memory, _c.DST: result})
    return plan.alias(result, MemoryDesc.strided((n, c)))


class SqueezePlan:
    """One shape. run takes X, and the parameters that there are in the order of the op."""

    def __init__(self, x, parameters, reduce_post_ops, expand_post_ops):
        reduce, reduce_bias, expand, expand_bias = parameters
        given = [p for p in parameters if p is not None]
        if 0 in x.shape or not all(is_constant(p) and p.flags.c_contiguous for p in given):
            raise NotServedError("an empty tensor, or parameters that may change")
        n = x.shape[0]
        self.shape = (n, expand.shape[0], 1, 1)
        self.weights, self.constants = {}, []
        plan = self.plan = Plan()
        source = plan.input(image_desc(x))
        memory = add_mean(plan, source, x.shape)
        memory = self._product(memory, n, reduce, reduce_bias, reduce_post_ops, False)
        self._product(memory, n, expand, expand_bias, expand_post_ops, True)

    def _product(self, memory, n, w, bias, post_ops, last):
        """Append the product of [N, C] in `memory` with a filter, and what follows; returns the memory of the result.

        All that follows is scaled by the result, so its rounding counts: the sum over C is taken in parts, which are
        then added.
        """
        k, c = w.shape[:2]
        parts = next(p for p in (16, 8, 4, 2, 1) if c % p == 0 and c // p >= min(c, 16))
        width = c // parts
        plan, strided = self.plan, MemoryDesc.strided
        attributes, _ = chain(post_ops)
        row = None if bias is None else strided((1, 1, k))
        source, split, result = strided((parts, n, width), (width, c, 1)), strided((parts, n, k)), strided((n, 1, k))
        engine, wanted = LIBRARY.engine, MemoryDesc.any((parts, width, k))
        first = PrimitiveDesc(
            "matmul", engine, source, wanted, *((row, split, attributes) if parts == 1 else (None, split, Attributes()))
        )
        chosen = first.desc(_c.QUERY_WEIGHTS_MD)
        self.weights[len(plan.external) - 1] = Weights(strided((parts, width, k), (width, 1, c)), chosen)
        arguments = {_c.SRC: plan.alias(memory, source), _c.WEIGHTS: plan.input(chosen)}
        extra = {} if bias is None else {_c.BIAS: plan.input(row)}
        output = plan.output if last else plan.temporary
        if parts == 1:
            target = output(split)
            plan.add(first, {**arguments, **extra, _c.DST: target})
            return target
        target, partial = output(result), plan.temporary(split)
        plan.add(first, {**arguments, _c.DST: partial})
        total = strided((n, parts, k), (k, n * k, 1))
        ones = self._ones(n, parts)
        second = PrimitiveDesc("matmul", engine, ones.desc, total, row, result, attributes)
        plan.add(second, {_c.SRC: ones, _c.WEIGHTS: plan.alias(partial, total), **extra, _c.DST: target})
        return target

    def _ones(self, n, parts):
        """Memory of ones [N, 1, parts]."""
        memory = Memory(MemoryDesc.strided((n, 1, parts)))
        array = np.ones((n, 1, parts), np.float32)
        call("memory_set_data_handle", memory, address(array))
        self.constants.append(array)
        return memory

    def run(self, x, parameters):
        out = empty_image(self.shape)
        weights = self.weights
        addresses = [weights[i].address(p) if i in weights else address(p) for i, p in enumerate(parameters)]
        self.plan.run(THREAD, address(x), *addresses, address(out))
        return out


@served("onednn_squeeze_excite")
def squeeze_excite(
    X, Reduce, ReduceBias=None, Expand=None, ExpandBias=None, *, reduce_post_ops, expand_post_ops, ctx
):  # fmt: skip
    parameters = (Reduce, ReduceBias, Expand, ExpandBias)
    known = tuple(None if p is None else is_constant(p) for p in parameters)
    key = (
        "squeeze",
        X.shape,
        X.strides,
        Reduce.shape,
        Expand.shape[0],
        known,
        *reduce_post_ops,
        None,
        *expand_post_ops,
    )
    plan = THREAD.plan(key, SqueezePlan, X, parameters, reduce_post_ops, expand_post_ops)
    if plan is None:
        return by_steps(X, *parameters, ctx.attrs, step)
    return plan.run(X, [p for p in parameters if p is not None])


@kernel("onednn_squeeze_excite", place="cpu", dtypes=FLOATS)
def plain_squeeze_excite(X, Reduce, ReduceBias=None, Expand=None, ExpandBias=None, *, ctx):
    return by_steps(X, Reduce, ReduceBias, Expand, ExpandBias, ctx.attrs, plain_step)


def by_steps(x, reduce, reduce_bias, expand, expand_bias, attrs, run):
    """The ops that it stands for, one by one."""
    mean = Step.of("pool2d", pooling_type="avg", ksize=[1, 1], adaptive=True)
    y = run("pool2d", {"X": x}, mean)
    one = Step.of("conv2d")
    y = after(run("conv2d", {"Input": y, "Filter": reduce}, one), 1, reduce_bias, None, attrs["reduce_post_ops"], run)
    return after(
        run("conv2d", {"Input": y, "Filter": expand}, one), 1, expand_bias, None, attrs["expand_post_ops"], run
    )
