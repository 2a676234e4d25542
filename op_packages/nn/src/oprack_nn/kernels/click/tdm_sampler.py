"""Kernel of tdm_sampler."""

from __future__ import annotations

import numpy as np
from oprack.errors import InvalidArgumentError
from oprack.kernel import Array, KernelContext, kernel
from oprack.tensor import numpy_dtype
from oprack.types import FLOATS


@kernel("tdm_sampler", dtypes=FLOATS | {"int32", "int64"})
def tdm_sampler(
    X: Array,
    Travel: Array,
    Layer: Array,
    *,
    output_positive: bool,
    neg_samples_num_list: list[int],
    layer_offset_lod: list[int],
    seed: int,
    dtype: int,
    ctx: KernelContext,
) -> tuple[Array, Array, Array]:
    """Layer by layer for all items: the nodes with the smallest of random keys, of which the path's is the greatest."""
    items = X.reshape(-1).astype(np.int64)
    if items.size and not (0 <= items.min() and items.max() < len(Travel)):
        raise InvalidArgumentError(
            f"op tdm_sampler: X holds items {items.min()} to {items.max()}; expected 0 <= item < {len(Travel)}, the "
            "rows of Travel"
        )
    generator = ctx.generator(seed)
    nodes, labels, masks = [], [], []
    for layer, noise in enumerate(neg_samples_num_list):
        path = Travel[items, layer].astype(np.int64)
        within = Layer.reshape(-1)[layer_offset_lod[layer] : layer_offset_lod[layer + 1]].astype(np.int64)
        keys = generator.random((len(items), len(within)))
        keys[within == path[:, None]] = 2
        others = within[np.argsort(keys, axis=1)[:, :noise]]
        found = (path != 0)[:, None]
        if output_positive:
            others = np.concatenate([path[:, None], others], axis=1)
        label = np.zeros_like(others)
        label[:, : int(output_positive)] = 1
        nodes.append(others * found)
        labels.append(label * found)
        masks.append(np.broadcast_to(found, others.shape))
    return tuple(np.concatenate(parts, axis=1).astype(numpy_dtype(dtype)) for parts in (nodes, labels, masks))
