"""The permutation that undoes another one."""

from __future__ import annotations


def inverse(axis, rank):
    axes = [a % rank for a in axis]
    return sorted(range(rank), key=axes.__getitem__)
