"""Hashes of many short rows at once: XXH32 and MurmurHash3 (x64, 128 bits), with their specifications' constants."""

from __future__ import annotations

import numpy as np
from oprack.kernel import Array

_P1, _P2, _P3, _P4, _P5 = (np.uint32(p) for p in (0x9E3779B1, 0x85EBCA77, 0xC2B2AE3D, 0x27D4EB2F, 0x165667B1))
_C1, _C2 = np.uint64(0x87C37B91114253D5), np.uint64(0x4CF5AD432745937F)
_M1, _M2 = np.uint64(0xFF51AFD7ED558CCD), np.uint64(0xC4CEB9FE1A85EC53)


def _rotated(x: Array, bits: int) -> Array:
    width = 8 * x.dtype.itemsize
    return (x << x.dtype.type(bits)) | (x >> x.dtype.type(width - bits))


def xxh32(words: Array, seeds: Array) -> Array:
    """uint32 [rows, seeds]: the hash of each row of uint32 words by each seed."""
    columns = [words[:, i : i + 1] for i in range(words.shape[1])]
    start = np.broadcast_to(seeds, (len(words), len(seeds))).copy()
    at = 0
    if len(columns) >= 4:
        lanes = [start + _P1 + _P2, start + _P2, start, start - _P1]
        for at in range(4, len(columns) // 4 * 4 + 1, 4):
            stripe = columns[at - 4 : at]
            lanes = [_rotated(a + w * _P2, 13) * _P1 for a, w in zip(lanes, stripe, strict=True)]
        one, two, three, four = (_rotated(a, bits) for a, bits in zip(lanes, (1, 7, 12, 18), strict=True))
        total = one + two + three + four
    else:
        total = start + _P5
    total = total + np.uint32(4 * len(columns))
    for word in columns[at:]:
        total = _rotated(total + word * _P3, 17) * _P4
    total = (total ^ (total >> np.uint32(15))) * _P2
    total = (total ^ (total >> np.uint32(13))) * _P3
    return total ^ (total >> np.uint32(16))


def murmur3_128(words: Array, seed: int) -> tuple[Array, Array]:
    """Both uint64 [rows] of the hash of each row of uint32 words."""
    count = words.shape[1]
    padded = np.zeros((len(words), -(-count // 4) * 4), np.uint32)
    padded[:, :count] = words
    blocks = padded.view("<u8")
    one, two = (np.full(len(words), seed, np.uint64) for _ in range(2))
    for i in range(0, blocks.shape[1], 2):
        whole = 2 * i + 4 <= count
        one = one ^ _rotated(blocks[:, i] * _C1, 31) * _C2
        if whole:
            one = (_rotated(one, 27) + two) * np.uint64(5) + np.uint64(0x52DCE729)
        two = two ^ _rotated(blocks[:, i + 1] * _C2, 33) * _C1  # of zeros behind the end: nothing
        if whole:
            two = (_rotated(two, 31) + one) * np.uint64(5) + np.uint64(0x38495AB5)
    one, two = one ^ np.uint64(4 * count), two ^ np.uint64(4 * count)
    one = one + two
    two = two + one
    one, two = _mixed(one), _mixed(two)
    one = one + two
    return one, two + one


def _mixed(x: Array) -> Array:
    for factor in (_M1, _M2):
        x = (x ^ (x >> np.uint64(33))) * factor
    return x ^ (x >> np.uint64(33))
