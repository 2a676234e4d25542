"""Attention by its definition: one query after the other."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

rng = np.random.default_rng(3)


def attention(
    q: np.ndarray,
    k: np.ndarray,
    v: np.ndarray,
    q_offsets: list[int],
    k_offsets: list[int],
    scale: float = 0.0,
    causal: bool = False,
    window: Any = (-1, -1),
    bias: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Out [N, heads, vdim] and the logarithm of the sums [N, heads]."""
    heads, shared = q.shape[1], q.shape[1] // k.shape[1]
    out = np.zeros((*q.shape[:2], v.shape[2]), q.dtype)
    lse = np.full(q.shape[:2], np.inf, q.dtype)
    places = zip(itertools.pairwise(q_offsets), itertools.pairwise(k_offsets), strict=True)
    for ((a, b), (c, d)), head in itertools.product(places, range(heads)):
        shift = (d - c) - (b - a) if causal else 0
        for i in range(b - a):
            seen = [j for j in range(d - c) if _sees(j - i - shift, causal, window)]
            if not seen:
                continue
            s = k[c:d, head // shared][seen] @ q[a + i, head] * (scale or q.shape[2] ** -0.5)
            if bias is not None:
                furthest = bias.shape[1] // 2
                s = s + bias[head, [np.clip(j - i - shift, -furthest, furthest) + furthest for j in seen]]
            e = np.exp(s)
            out[a + i, head] = e / e.sum() @ v[c:d, head // shared][seen]
            lse[a + i, head] = np.log(e.sum())
    return out, lse


def _sees(distance: int, causal: bool, window: Any) -> bool:
    before, behind = window
    return not (causal and distance > 0) and (before < 0 or -distance <= before) and (behind < 0 or distance <= behind)


def normal(*shape: int, dtype: str = "float64") -> np.ndarray:
    return rng.standard_normal(shape).astype(dtype)


def gradient(
    q: np.ndarray, k: np.ndarray, v: np.ndarray, g: np.ndarray, q_offsets: list[int], k_offsets: list[int]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Of q, k and v, where the result's is g, without attributes and with as many heads of keys as of queries."""
    found, scale = tuple(np.zeros_like(x) for x in (q, k, v)), q.shape[2] ** -0.5
    for (a, b), (c, d) in zip(itertools.pairwise(q_offsets), itertools.pairwise(k_offsets), strict=True):
        for i, head in itertools.product(range(a, b), range(q.shape[1])):
            if c == d:
                continue
            keys, values = k[c:d, head], v[c:d, head]
            e = np.exp(keys @ q[i, head] * scale)
            p = e / e.sum()
            of_s = (np.diag(p) - np.outer(p, p)) @ values @ g[i, head] * scale  # the Jacobian of softmax
            found[0][i, head] += of_s @ keys
            found[1][c:d, head] += np.outer(of_s, q[i, head])
            found[2][c:d, head] += np.outer(p, g[i, head])
    return found
