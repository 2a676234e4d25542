"""Kernels of ops of networks."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from oprack.errors import InvalidArgumentError
from oprack.kernel import Array, KernelContext, kernel
from oprack.kernel import kernel as declared
from oprack.tensor import SparseCooTensor, SparseCsrTensor
from oprack.types import FLOATS

from oprack_sparse.kernels._patterns import coordinates, numbered, values_at
from oprack_sparse.kernels.product import inner_at, times_dense, transposed_times_dense
from oprack_sparse.kernels.reduce import Rows, rows_of

# norm -----------------------------------------------------------------------------------------------------------------
# Kernels that both batch norms share: the dense op over the listed values.
NAMES = ("is_test", "momentum", "epsilon", "use_global_stats", "trainable_statistics")


def _attrs(ctx: KernelContext) -> dict[str, Any]:
    return {name: ctx.attrs[name] for name in NAMES} | {"data_layout": "NHWC"}


def norm_by(dense: str) -> Callable[..., tuple[Any, ...]]:
    """The kernel that normalises the values by a dense op."""

    def norm(
        x: SparseCooTensor, mean: Array, variance: Array, scale: Array, bias: Array, *, ctx: KernelContext
    ) -> tuple[Any, ...]:
        given = {"X": x.values, "Mean": mean, "Variance": variance, "Scale": scale, "Bias": bias}
        y, *statistics = ctx.run_op(dense, given, _attrs(ctx))
        return (x.with_values(y), *statistics[:4], np.empty(0, x.values.dtype))

    return norm


def grad_by(dense: str) -> Callable[..., dict[str, Any]]:
    """The kernel of the gradient, by that of a dense op."""

    def norm_grad(
        x: SparseCooTensor,
        scale: Array,
        mean_out: Array,
        variance_out: Array,
        saved_mean: Array,
        saved_variance: Array,
        out_grad: SparseCooTensor,
        *,
        ctx: KernelContext,
    ) -> dict[str, Any]:
        given = {
            "X": x.values,
            "Scale": scale,
            "Mean": mean_out,
            "Variance": variance_out,
            "SavedMean": saved_mean,
            "SavedVariance": saved_variance,
            "Y@GRAD": values_at(out_grad, x),
        }
        found = ctx.run_op(dense, given, _attrs(ctx))
        by_x, by_scale, by_bias = (found[name] for name in ("X_grad", "Scale_grad", "Bias_grad"))
        return {"x_grad": x.with_values(by_x), "scale_grad": by_scale, "bias_grad": by_bias}

    return norm_grad


# windows --------------------------------------------------------------------------------------------------------------
# Windows over listed points: which point meets which place of which window.
@dataclass(frozen=True)
class Pairs:
    """Pairs of a point of the input and a point of the output, sorted by the place in the window.

    Attributes:
        indices: Coordinates of the points of the output, sorted.
        rulebook: Int32 [3, pairs]: place in the window, point of the input, point of the output.
        counter: Int32: pairs for each place.
    """

    indices: Array
    rulebook: Array
    counter: Array


def pairs(
    x: SparseCooTensor,
    sizes: Sequence[int],
    paddings: Sequence[int],
    strides: Sequence[int],
    dilations: Sequence[int],
    *,
    subm: bool = False,
) -> Pairs:
    """Find the pairs.

    Args:
        x: Points [N, space ...], with dense channels.
        sizes: Of the window.
        paddings: Empty space on both sides of each dim.
        strides: Steps between windows.
        dilations: Steps between the places of a window.
        subm: Whether the output has the points of the input, with windows around them.

    Returns:
        The pairs.
    """
    points, space = coordinates(x), x.shape[1:-1]
    if len(points) != len(space) + 1:
        raise InvalidArgumentError(
            f"x is {x!r} with {len(points)} sparse dims; expected all dims but the channels to be sparse: "
            f"x.to_sparse_coo({len(space) + 1})"
        )
    if subm:
        paddings, strides = [k // 2 for k in sizes], [1] * len(sizes)
    found = [
        (d + 2 * p - e * (k - 1) - 1) // s + 1
        for d, k, p, s, e in zip(space, sizes, paddings, strides, dilations, strict=True)
    ]
    column = [np.array(v, np.int64).reshape(-1, 1, 1) for v in (found, paddings, strides, dilations)]
    within, padding, stride, dilation = column
    places = np.indices(tuple(sizes), np.int64).reshape(len(sizes), -1, 1)
    # [dims, places, points]: where the window lies whose place meets the point, in steps of 1
    start = points[1:, None, :] + padding - places * dilation
    window = start // stride
    meets = ((start % stride == 0) & (window >= 0) & (window < within)).all(axis=0)
    place, point = np.nonzero(meets)
    at = np.concatenate([points[:1, point], window[:, place, point]])
    if subm:
        known, wanted = numbered(x.shape[:-1], points, at)
        order = np.argsort(known, kind="stable")
        position = np.minimum(np.searchsorted(known[order], wanted), max(len(known) - 1, 0))
        hit = known[order][position] == wanted
        place, point, target, indices = place[hit], point[hit], order[position[hit]], points
    else:
        (wanted,) = numbered((x.shape[0], *found), at)
        _, first, target = np.unique(wanted, return_index=True, return_inverse=True)
        indices = at[:, first]
    rulebook = np.stack([place, point, target.reshape(-1)]).astype(np.int32)
    return Pairs(indices, rulebook, np.bincount(place, minlength=math.prod(sizes)).astype(np.int32))


def by_place(rulebook: Array, count: int) -> list[slice]:
    """The pairs of each place in the window, which are neighbours."""
    ends = np.searchsorted(rulebook[0], np.arange(count + 1))
    return [slice(a, b) for a, b in itertools.pairwise(ends.tolist())]


def summed(values: Array, targets: Array, count: int) -> Array:
    """Sums of rows by their targets: [count, ...]."""
    found = np.zeros((count, *values.shape[1:]), values.dtype)
    if len(targets):
        order = np.argsort(targets, kind="stable")
        ordered = targets[order]
        first = np.flatnonzero(np.diff(ordered, prepend=-1))
        found[ordered[first]] = np.add.reduceat(values[order], first, axis=0)
    return found


# sparse_batch_norm ----------------------------------------------------------------------------------------------------
sparse_batch_norm = kernel("sparse_batch_norm", dtypes=FLOATS)(norm_by("batch_norm"))

sparse_batch_norm_grad = kernel("sparse_batch_norm_grad", dtypes=FLOATS)(grad_by("batch_norm_grad"))


# sparse_conv3d --------------------------------------------------------------------------------------------------------
def _places(kernel: Array) -> tuple[Array, int]:
    """(matrices [places, C, O], how many)."""
    count = math.prod(kernel.shape[:-2])
    return kernel.reshape(count, *kernel.shape[-2:]), count


@declared("sparse_conv3d", dtypes=FLOATS)
def sparse_conv3d(
    x: SparseCooTensor,
    kernel: Array,
    *,
    paddings: Sequence[int],
    dilations: Sequence[int],
    strides: Sequence[int],
    subm: bool,
) -> tuple[SparseCooTensor, Array, Array]:
    """One product of matrices for each place in the kernel."""
    found = pairs(x, kernel.shape[:-2], paddings, strides, dilations, subm=subm)
    weights, count = _places(kernel)
    _, point, target = found.rulebook
    products = np.empty((len(point), kernel.shape[-1]), x.values.dtype)
    for weight, part in zip(weights, by_place(found.rulebook, count), strict=True):
        products[part] = x.values[point[part]] @ weight
    values = summed(products, target, found.indices.shape[1])
    # the dims of space: those of x, or as many places as the windows have
    space = (
        x.shape[1:-1]
        if subm
        else [
            (d + 2 * p - e * (k - 1) - 1) // s + 1
            for d, k, p, s, e in zip(x.shape[1:-1], kernel.shape, paddings, strides, dilations, strict=False)
        ]
    )
    indices = found.indices.astype(x.indices.dtype)
    out = SparseCooTensor(indices, values, (x.shape[0], *space, kernel.shape[-1]), check=False)
    return out, found.rulebook, found.counter


@declared("sparse_conv3d_grad", dtypes=FLOATS)
def sparse_conv3d_grad(
    x: SparseCooTensor, kernel: Array, out: SparseCooTensor, rulebook: Array, out_grad: SparseCooTensor
) -> tuple[SparseCooTensor, Array]:
    """By the points and by the kernel."""
    weights, count = _places(kernel)
    gradient = values_at(out_grad, out)
    _, point, target = rulebook
    products = np.empty((len(point), x.values.shape[-1]), x.values.dtype)
    by_kernel = np.zeros_like(weights)
    for k, part in enumerate(by_place(rulebook, count)):
        arrived = gradient[target[part]]
        products[part] = arrived @ weights[k].T
        by_kernel[k] = x.values[point[part]].T @ arrived
    return x.with_values(summed(products, point, x.nnz)), by_kernel.reshape(kernel.shape)


# sparse_fused_attention -----------------------------------------------------------------------------------------------
def _rows(pattern: SparseCsrTensor) -> Rows:
    found = rows_of("sparse_fused_attention", pattern, -1)
    assert found is not None  # a CSR tensor has no dense dims
    return Rows(found)


def _matrices(x: Array) -> Array:
    return x.reshape(-1, *x.shape[2:])


@kernel("sparse_fused_attention", dtypes=FLOATS)
def sparse_fused_attention(
    query: Array,
    key: Array,
    value: Array,
    sparse_mask: SparseCsrTensor,
    key_padding_mask: Array | None = None,
    attn_mask: Array | None = None,
) -> tuple[Array, SparseCsrTensor]:
    """Products, weights and sums at the listed places alone."""
    matrix, row, column = coordinates(sparse_mask)
    scores = inner_at(sparse_mask, _matrices(query), _matrices(key)) / query.dtype.type(math.sqrt(query.shape[-1]))
    taken = np.ones(len(scores), bool)
    if key_padding_mask is not None:
        taken &= key_padding_mask[matrix // query.shape[1], column] != 0
    if attn_mask is not None:
        taken &= attn_mask[row, column] != 0
    rows = _rows(sparse_mask)
    largest = rows.reduced(np.maximum, np.where(taken, scores, -np.inf))
    power = np.where(taken, np.exp(scores - np.where(np.isfinite(largest), largest, 0)), 0).astype(query.dtype)
    total = rows.reduced(np.add, power)
    weights = sparse_mask.with_values(np.divide(power, total, out=np.zeros_like(power), where=total != 0))
    return times_dense(weights, _matrices(value)).reshape(query.shape), weights


@kernel("sparse_fused_attention_grad", dtypes=FLOATS)
def sparse_fused_attention_grad(
    query: Array, key: Array, value: Array, softmax: SparseCsrTensor, out_grad: Array
) -> tuple[Array, Array, Array]:
    """By query, key and value."""
    gradient, scale = _matrices(out_grad), query.dtype.type(1 / math.sqrt(query.shape[-1]))
    by_weights = inner_at(softmax, gradient, _matrices(value))
    product = softmax.values * by_weights
    by_scores = (product - softmax.values * _rows(softmax).reduced(np.add, product)) * scale
    scores = softmax.with_values(by_scores)
    by_query = times_dense(scores, _matrices(key)).reshape(query.shape)
    by_key = transposed_times_dense(scores, _matrices(query)).reshape(query.shape)
    return by_query, by_key, transposed_times_dense(softmax, gradient).reshape(query.shape)


# sparse_maxpool -------------------------------------------------------------------------------------------------------
@kernel("sparse_maxpool", dtypes=FLOATS)
def sparse_maxpool(
    x: SparseCooTensor,
    *,
    kernel_sizes: Sequence[int],
    paddings: Sequence[int],
    dilations: Sequence[int],
    strides: Sequence[int],
) -> tuple[SparseCooTensor, Array, Array]:
    """The largest of the points in each window."""
    found = pairs(x, kernel_sizes, paddings, strides, dilations)
    _, point, target = found.rulebook
    order = np.argsort(target, kind="stable")
    first = np.flatnonzero(np.diff(target[order], prepend=-1))
    values = x.values[point[order]]
    values = np.maximum.reduceat(values, first, axis=0) if len(first) else values
    space = [
        (d + 2 * p - e * (k - 1) - 1) // s + 1
        for d, k, p, s, e in zip(x.shape[1:-1], kernel_sizes, paddings, strides, dilations, strict=True)
    ]
    indices = found.indices.astype(x.indices.dtype)
    out = SparseCooTensor(indices, values, (x.shape[0], *space, x.shape[-1]), check=False)
    return out, found.rulebook, found.counter


@kernel("sparse_maxpool_grad", dtypes=FLOATS)
def sparse_maxpool_grad(
    x: SparseCooTensor, out: SparseCooTensor, rulebook: Array, out_grad: SparseCooTensor
) -> SparseCooTensor:
    """The gradient of each window for the points that are its maximum."""
    _, point, target = rulebook
    chosen = x.values[point] == out.values[target]
    return x.with_values(summed(values_at(out_grad, out)[target] * chosen, point, x.nnz))


# sparse_sync_batch_norm -----------------------------------------------------------------------------------------------
sparse_sync_batch_norm = kernel("sparse_sync_batch_norm", dtypes=FLOATS)(norm_by("sync_batch_norm"))

sparse_sync_batch_norm_grad = kernel("sparse_sync_batch_norm_grad", dtypes=FLOATS)(grad_by("sync_batch_norm_grad"))
