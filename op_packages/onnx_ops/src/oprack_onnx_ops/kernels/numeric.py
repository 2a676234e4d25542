"""Kernels of ops.numeric."""

from __future__ import annotations

from typing import Any

import numpy as np
from oprack.kernel import Array, kernel

_REDUCED: dict[str, Any] = {"sum": np.add, "mean": np.add, "prod": np.multiply, "max": np.maximum, "min": np.minimum}


def _empty(function: str, dtype: np.dtype) -> Any:
    """The largest or smallest value of nothing."""
    if dtype == np.bool_:
        return function == "min"
    if dtype.kind in "iu":
        limits: Any = np.iinfo(dtype)
        return limits.min if function == "max" else limits.max
    return -np.inf if function == "max" else np.inf


@kernel("onnx_reduce", place="cpu")
def reduce(
    data: Array, axes: Array | None = None, *, function: str, keepdims: bool, noop_with_empty_axes: bool
) -> Array:
    along: tuple[int, ...] | None = None
    if axes is not None and axes.size:
        along = tuple(int(a) for a in axes.reshape(-1))
    elif noop_with_empty_axes:
        return data.copy()
    more: dict[str, Any] = {}
    if function in ("max", "min"):
        more["initial"] = _empty(function, data.dtype)
    wide = np.float32 if data.dtype.itemsize == 2 and data.dtype.kind not in "iu" else data.dtype
    found = _REDUCED[function].reduce(data, along, dtype=wide, keepdims=keepdims, **more)
    if function == "mean":
        count = data.size // max(found.size, 1)
        found = found / max(count, 1) if count or data.dtype.kind in "iu" else found / np.nan
    return np.asarray(found, data.dtype)


@kernel("onnx_cumulate", place="cpu")
def cumulate(x: Array, axis: Array, *, function: str, exclusive: bool, reverse: bool) -> Array:
    along = int(axis.reshape(-1)[0])
    ufunc: Any = np.add if function == "sum" else np.multiply
    x = np.flip(x, along) if reverse else x
    out = ufunc.accumulate(x, along, dtype=x.dtype)
    if exclusive:
        rows = np.moveaxis(out, along, 0)
        shifted = np.empty_like(rows)
        shifted[1:], shifted[:1] = rows[:-1], 0 if function == "sum" else 1
        out = np.moveaxis(shifted, 0, along)
    return np.ascontiguousarray(np.flip(out, along) if reverse else out)


@kernel("onnx_fmod", place="cpu")
def fmod(A: Array, B: Array) -> Array:
    return np.fmod(A, B)


@kernel("onnx_round", place="cpu")
def round_(X: Array) -> Array:
    return np.rint(X)


@kernel("onnx_is_inf", place="cpu")
def is_inf(X: Array, *, detect_negative: bool, detect_positive: bool) -> Array:
    found = np.isinf(X)
    if not detect_negative:
        found &= X > 0
    if not detect_positive:
        found &= X < 0
    return found


@kernel("onnx_pow", place="cpu")
def power(X: Array, Y: Array) -> Array:
    if X.dtype.kind in "iu" and Y.dtype.kind in "iu" and (not Y.size or int(Y.min()) >= 0):
        return np.power(X, Y.astype(X.dtype))
    with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
        return np.power(X, Y.astype(X.dtype) if X.dtype.kind == "f" else Y.astype(np.float64)).astype(X.dtype)


@kernel("onnx_hardmax", place="cpu")
def hardmax(input: Array, *, axis: int) -> Array:
    out = np.zeros_like(input)
    if input.size:
        np.put_along_axis(out, np.argmax(input, axis=axis, keepdims=True), 1, axis)
    return out


@kernel("onnx_lp_normalization", place="cpu")
def lp_normalization(input: Array, *, axis: int, p: int) -> Array:
    norm = np.abs(input).sum(axis, keepdims=True) if p == 1 else np.sqrt((input * input).sum(axis, keepdims=True))
    return np.where(norm == 0, 0, input / np.where(norm == 0, 1, norm)).astype(input.dtype)


@kernel("onnx_tf_idf", place="cpu")
def tf_idf(
    X: Array,
    *,
    mode: str,
    min_gram_length: int,
    max_gram_length: int,
    max_skip_count: int,
    ngram_counts: list[int],
    ngram_indexes: list[int],
    pool_int64s: list[int],
    weights: list[float],
) -> Array:
    rows = X.reshape(-1, X.shape[-1])
    out = np.zeros((rows.shape[0], max(ngram_indexes, default=-1) + 1), np.float32)
    gram = 0
    for n, (begin, end) in enumerate(zip(ngram_counts, [*ngram_counts[1:], len(pool_int64s)], strict=True), start=1):
        grams = np.array(pool_int64s[begin:end], np.int64).reshape(-1, n)
        columns = ngram_indexes[gram : gram + len(grams)]
        if min_gram_length <= n <= max_gram_length and len(grams):
            for skip in range(max_skip_count + 1 if n > 1 else 1):
                count = rows.shape[1] - (n - 1) * (skip + 1)
                if count > 0:
                    places = np.arange(count)[:, None] + np.arange(n) * (skip + 1)
                    hits = (rows[:, places][:, :, None] == grams).all(-1).sum(1)
                    np.add.at(out.T, columns, hits.T.astype(np.float32))
        gram += len(grams)
    if mode != "TF":
        scale = np.ones(out.shape[1], np.float32)
        scale[ngram_indexes] = weights if weights else 1.0
        out = (out if mode == "TFIDF" else np.minimum(out, 1)) * scale
    return out.reshape(*X.shape[:-1], -1)


@kernel("onnx_array_feature_extractor", place="cpu")
def array_feature_extractor(X: Array, Y: Array) -> Array:
    found = np.take(X, Y.reshape(-1), -1)
    return found.reshape(1, -1) if X.ndim == 1 else found


@kernel("onnx_binarizer", place="cpu")
def binarizer(X: Array, *, threshold: float) -> Array:
    return (X > threshold).astype(X.dtype)


def _member_lists(values: Array | None, modes: Array) -> list[Array]:
    """For each node of mode member its values, in order of the nodes."""
    lists = [] if values is None else np.split(values, np.flatnonzero(np.isnan(values)) + 1)
    found = iter(lists)
    return [next(found, np.empty(0))[:-1] if mode == 6 else np.empty(0) for mode in modes]


_COMPARED = [np.less_equal, np.less, np.greater_equal, np.greater, np.equal, np.not_equal]


@kernel("onnx_tree_ensemble", place="cpu")
def tree_ensemble(
    X: Array,
    splits: Array,
    leaf_weights: Array,
    modes: Array,
    membership_values: Array | None = None,
    *,
    n_targets: int,
    aggregate_function: int,
    post_transform: int,
    tree_roots: list[int],
    nodes_featureids: list[int],
    nodes_truenodeids: list[int],
    nodes_trueleafs: list[int],
    nodes_falsenodeids: list[int],
    nodes_falseleafs: list[int],
    nodes_missing_value_tracks_true: list[int],
    leaf_targetids: list[int],
) -> Array:
    features, members = np.array(nodes_featureids), _member_lists(membership_values, modes)
    go, leaf = np.array([nodes_falsenodeids, nodes_truenodeids]), np.array([nodes_falseleafs, nodes_trueleafs])
    missing = np.array(nodes_missing_value_tracks_true or [0] * len(features), bool)
    start = {2: np.inf, 3: -np.inf}.get(aggregate_function, 0.0)
    out = np.full((X.shape[0], n_targets), start, np.float64)
    targets, rows = np.array(leaf_targetids), np.arange(X.shape[0])
    join: Any = {2: np.minimum, 3: np.maximum}.get(aggregate_function, np.add)
    for root in tree_roots:
        at, active = np.full(X.shape[0], root), rows
        reached = np.zeros(X.shape[0], np.int64)
        for _ in range(len(features) + 1):  # no way down a tree is longer
            if not active.size:
                break
            nodes = at[active]
            values = X[active, features[nodes]]
            truth = np.zeros(active.size, bool)
            for mode, compare in enumerate(_COMPARED):
                chosen = modes[nodes] == mode
                truth[chosen] = compare(values[chosen], splits[nodes[chosen]])
            for i in np.flatnonzero(modes[nodes] == 6):
                truth[i] = bool((members[nodes[i]] == values[i]).any())
            truth |= np.isnan(values) & missing[nodes]
            side = truth.astype(np.int64)
            at[active] = go[side, nodes]
            done = leaf[side, nodes] != 0
            reached[active[done]] = at[active[done]]
            active = active[~done]
        join.at(out, (rows, targets[reached]), leaf_weights[reached])
    if aggregate_function == 0 and tree_roots:
        out /= len(tree_roots)
    if post_transform == 1:
        shifted = np.exp(out - out.max(1, keepdims=True))
        out = shifted / shifted.sum(1, keepdims=True)
    elif post_transform == 2:
        out = 1 / (1 + np.exp(-out))
    elif post_transform:
        raise NotImplementedError(f"post_transform is {post_transform}; expected 0, 1 or 2")
    return out.astype(X.dtype)
