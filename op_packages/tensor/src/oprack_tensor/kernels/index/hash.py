"""Kernel of hash: XXH64 of the bytes of all rows at once, with the specification's constants."""

from __future__ import annotations

import numpy as np
from oprack.kernel import Array, kernel

_P1, _P2, _P3, _P4, _P5 = (
    np.uint64(p)
    for p in (
        0x9E3779B185EBCA87,
        0xC2B2AE3D27D4EB4F,
        0x165667B19E3779F9,
        0x85EBCA77C2B2AE63,
        0x27D4EB2F165667C5,
    )
)
_STRIPE = 32


def _rotated(x: Array, bits: int) -> Array:
    return (x << np.uint64(bits)) | (x >> np.uint64(64 - bits))


def _round(lane: Array, word: Array) -> Array:
    return _rotated(lane + word * _P2, 31) * _P1


def _xxh64(rows: Array, seed: int) -> Array:
    """uint64 [n], the hash of each row of bytes [n, length]; length is a multiple of 4."""
    n, length = rows.shape
    start = np.full(n, seed, np.uint64)
    at = 0
    if length >= _STRIPE:
        lanes = [start + _P1 + _P2, start + _P2, start, start - _P1]
        words = rows[:, : length // _STRIPE * _STRIPE].copy().view("<u8")
        for i in range(0, words.shape[1], 4):
            lanes = [_round(lane, words[:, i + k]) for k, lane in enumerate(lanes)]
        total = sum(_rotated(lane, bits) for lane, bits in zip(lanes, (1, 7, 12, 18), strict=True))
        for lane in lanes:
            total = (total ^ _round(np.zeros_like(lane), lane)) * _P1 + _P4
        at = words.shape[1] * 8
    else:
        total = start + _P5
    total = total + np.uint64(length)
    while length - at >= 8:
        word = rows[:, at : at + 8].copy().view("<u8")[:, 0]
        total = _rotated(total ^ _round(np.zeros_like(word), word), 27) * _P1 + _P4
        at += 8
    if length - at >= 4:
        word = rows[:, at : at + 4].copy().view("<u4")[:, 0].astype(np.uint64)
        total = _rotated(total ^ (word * _P1), 23) * _P2 + _P3
    total = (total ^ (total >> np.uint64(33))) * _P2
    total = (total ^ (total >> np.uint64(29))) * _P3
    return total ^ (total >> np.uint64(32))


@kernel("hash", dtypes=("int32", "int64"))
def hash_rows(X: Array, *, num_hash: int, mod_by: int) -> Array:
    """Hashes of each row, one for each seed."""
    rows = np.ascontiguousarray(X).view(np.uint8).reshape(len(X), -1) if X.size else np.zeros((len(X), 0), np.uint8)
    found = [_xxh64(rows, seed) % np.uint64(mod_by) for seed in range(num_hash)]
    return np.stack(found, axis=1).astype(X.dtype)[..., None]
