"""Products of a few rows with a filter of 1x1, whose rounding counts: what follows is scaled by them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from oprack.kernel import Array

from oprack_onednn.chain.descs import primitive_desc
from oprack_onednn.chain.parameters import Weights
from oprack_onednn.dnnl import _c
from oprack_onednn.dnnl.library import LIBRARY
from oprack_onednn.dnnl.objects import Attributes, Memory, MemoryDesc
from oprack_onednn.kernels._steps import as_post_ops

if TYPE_CHECKING:
    from oprack_onednn.chain.primitive_chain import PrimitiveChain
    from oprack_onednn.dnnl.operands import External


def add_product(
    chain: PrimitiveChain,
    weights: dict[int, Weights],
    memory: External | Memory,
    rows: int,
    w: Array,
    bias: bool,
    post_ops: tuple[str, ...],
    *,
    constant: bool = True,
    last: bool = False,
) -> External | Memory:
    """Append to a chain the product of rows with a filter, the bias and the post-ops.

    The sum over C is taken in parts, which are then added. Filter and bias become inputs of the chain.

    Args:
        chain: The chain.
        weights: Gets the layout of the filter, by its place among the chain's inputs.
        memory: The rows, [rows, C].
        rows: How many there are.
        w: The filter, [K, C, 1, 1].
        bias: Whether there is one.
        post_ops: What follows.
        constant: Whether the filter is packed once.
        last: Whether the product is the chain's result.

    Returns:
        The memory of the product.
    """
    strided, engine = MemoryDesc.strided, LIBRARY.engine
    k, c = w.shape[:2]
    # Partial sums keep the rounding error of long rows near that of NumPy's pairwise sums.
    parts = next(p for p in (16, 8, 4, 2, 1) if c % p == 0 and c // p >= min(c, 16))
    width = c // parts
    source, split, result = strided((parts, rows, width), (width, c, 1)), strided((parts, rows, k)), (rows, 1, k)
    view = strided((parts, width, k), (width, 1, c))
    row = strided((1, 1, k)) if bias else None
    attributes, _ = as_post_ops(post_ops)
    after, empty = (row, split, attributes), (None, split, Attributes())
    wanted = MemoryDesc.any((parts, width, k)) if constant else view
    first = primitive_desc("matmul", engine, source, wanted, *(after if parts == 1 else empty))
    chosen = first.desc(_c.QUERY_WEIGHTS_MD)
    if constant:
        weights[len(chain.external)] = Weights(view, chosen)
    given = chain.alias(memory, source)
    arguments: dict[int, Memory] = {_c.SRC: given, _c.WEIGHTS: chain.input(chosen)}
    extra = {} if row is None else {_c.BIAS: chain.input(row)}
    output = chain.output if last else chain.temporary
    if parts == 1:
        target = output(split)
        chain.add(first, {**arguments, **extra, _c.DST: target})
        return target
    partial, target = chain.temporary(split), output(strided(result))
    chain.add(first, {**arguments, _c.DST: partial})
    # adding up is a product with ones, which takes bias and post-ops
    total = strided((rows, parts, k), (k, rows * k, 1))
    ones = Memory(strided((rows, 1, parts)), np.ones((rows, 1, parts), np.float32))
    second = primitive_desc("matmul", engine, ones.desc, total, row, target.desc, attributes)
    chain.add(second, {_c.SRC: ones, _c.WEIGHTS: chain.alias(partial, total), **extra, _c.DST: target})
    return target
