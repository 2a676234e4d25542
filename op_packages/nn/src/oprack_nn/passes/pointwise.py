"""Two convolutions in a row, one of them with a 1x1 kernel, become one where that needs fewer products."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from oprack.ir import Match, NewVar, OpNode, PatternBuilder, fusion
from oprack.kernel import Array
from oprack.op.families import pad_pairs

from oprack_nn.ops._layout import is_channel_last


def _is_dense(op: OpNode) -> bool:
    return op.attr("groups", 1) == 1


def _is_pointwise(m: Match, conv: Any, w: Array) -> bool:
    """Whether a convolution is a product of each pixel's channels with a matrix."""
    if w.shape[2:] != (1, 1) or any(s != 1 for s in m.attr(conv, "strides")):
        return False
    return m.attr(conv, "padding_algorithm") != "EXPLICIT" or not any(map(any, pad_pairs(m.attr(conv, "paddings"), 2)))


@fusion("merge_pointwise_convs")
def merge_pointwise_convs(p: PatternBuilder) -> tuple[Any, Callable[..., Any]]:
    """conv(conv(x, v), w)  ->  conv(x, w v)"""
    first = p.op("conv2d", Input="x", Filter=p.param("v"), where=_is_dense)
    second = p.op("conv2d", Input=first, Filter=p.param("w"), where=_is_dense)

    def build(m: Match) -> NewVar | None:
        v, w = m.value("v"), m.value("w")
        if is_channel_last(m.attr(first, "data_format")) != is_channel_last(m.attr(second, "data_format")):
            return None
        before, after = (matrix.astype(np.float64) for matrix in (v, w))
        # padding adds zeros to what lies between, as to x: there is no bias in between
        if _is_pointwise(m, second, w):
            main, product = first, np.einsum("ok,kchw->ochw", after[:, :, 0, 0], before)
        elif _is_pointwise(m, first, v):
            main, product = second, np.einsum("okhw,kc->ochw", after, before[:, :, 0, 0])
        else:
            return None
        if product.size >= v.size + w.size:
            return None
        return m.op("conv2d", Input=m["x"], Filter=m.new_param(product, like="w"), attrs=m.attrs(main))

    return second, build
