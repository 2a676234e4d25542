"""Kernels of ops for models of clicks: their features and statistics."""

from __future__ import annotations

import numpy as np
from oprack.errors import InvalidArgumentError
from oprack.kernel import Array, ArrayModule, KernelContext, kernel
from oprack.tensor import ShapeOnly, numpy_dtype
from oprack.types import FLOATS

# cvm ------------------------------------------------------------------------------------------------------------------
_PLACES = ("cpu", "cuda")


@kernel("cvm", place=_PLACES, dtypes=FLOATS)
def cvm(X: Array, CVM: Array, *, use_cvm: bool, xp: ArrayModule) -> Array:
    if not use_cvm:
        return X[:, 2:].copy()
    y = X.copy()
    y[:, :2] = xp.log(X[:, :2] + X.dtype.type(1))
    y[:, 1] -= y[:, 0]
    return y


def _instances(ctx: KernelContext, count: int) -> np.ndarray:
    """The instance of each row of X."""
    lod = ctx.lod("X")
    if not lod or len(lod[0]) != count + 1:
        raise InvalidArgumentError(
            f"op cvm_grad: X has LoD {lod} and CVM {count} rows; expected a row of CVM for each row of X, or for "
            "each of its sequences"
        )
    return np.repeat(np.arange(count), np.diff(lod[0]))


@kernel("cvm_grad", place=_PLACES, dtypes=FLOATS)
def cvm_grad(X: ShapeOnly, CVM: Array, Y_grad: Array, *, use_cvm: bool, ctx: KernelContext, xp: ArrayModule) -> Array:
    dx = xp.empty(X.shape, Y_grad.dtype)
    dx[:, 2:] = Y_grad[:, 2:] if use_cvm else Y_grad
    dx[:, :2] = CVM if len(CVM) == len(dx) else CVM[xp.asarray(_instances(ctx, len(CVM)))]
    return dx


# tdm_child ------------------------------------------------------------------------------------------------------------
@kernel("tdm_child", dtypes=FLOATS | {"int32", "int64"})
def tdm_child(X: Array, TreeInfo: Array, *, child_nums: int, dtype: int) -> tuple[Array, Array]:
    if X.size and (X.min() < 0 or X.max() >= len(TreeInfo)):
        raise InvalidArgumentError(
            f"op tdm_child: X holds nodes {int(X.min())} to {int(X.max())}; expected 0 <= node < {len(TreeInfo)}, the "
            "rows of TreeInfo"
        )
    children = TreeInfo[X.astype(np.int64)][..., 3 : 3 + child_nums].astype(np.int64)
    has = (X != 0) & (children[..., 0] != 0)
    children = np.where(has[..., None], children, 0)
    if children.size and (children.min() < 0 or children.max() >= len(TreeInfo)):
        raise InvalidArgumentError(
            f"op tdm_child: TreeInfo names child {int(children.max())}; expected nodes below {len(TreeInfo)}, its rows"
        )
    leaf = (TreeInfo[children, 0] != 0) & has[..., None]
    kind = numpy_dtype(dtype)
    return children.astype(kind), leaf.astype(kind)


# tdm_sampler ----------------------------------------------------------------------------------------------------------
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
) -> tuple[Array, ...]:
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


# unzip ----------------------------------------------------------------------------------------------------------------
def _taken(lod: Array, rows: int, xp: ArrayModule) -> Array:
    """The instances that have a row."""
    taken = xp.flatnonzero(lod[1:] > lod[:-1])
    if len(taken) > rows:
        raise InvalidArgumentError(
            f"op unzip: lod rises {len(taken)} times and X has {rows} rows; expected as many rows or more"
        )
    return taken


@kernel("unzip", place=("cpu", "cuda"))
def unzip(X: Array, lod: Array, *, xp: ArrayModule) -> Array:
    """One scatter of rows."""
    taken = _taken(lod, len(X), xp)
    out = xp.zeros((max(len(lod) - 1, 0), X.shape[1]), X.dtype)
    out[taken] = X[: len(taken)]
    return out


@kernel("unzip_grad", place=("cpu", "cuda"))
def unzip_grad(X: ShapeOnly, lod: Array, Y_grad: Array, *, xp: ArrayModule) -> Array:
    """One gather of rows."""
    taken = _taken(lod, X.shape[0], xp)
    grad = xp.zeros(X.shape, Y_grad.dtype)
    grad[: len(taken)] = Y_grad[taken]
    return grad
