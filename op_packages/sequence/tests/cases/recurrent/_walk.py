"""Recurrent ops, one row after the other."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
from oprack.tensor import LoDTensor, lod_from_lengths

SIZE = 3
ACTIVATIONS = {
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "tanh": np.tanh,
    "relu": lambda x: np.maximum(x, 0),
    "identity": lambda x: x,
}
rng = np.random.default_rng(11)


def small(*shape: int) -> np.ndarray:
    """Numbers at which activations are not flat."""
    return rng.standard_normal(shape) * 0.5


def program_inputs(inputs: dict[str, Any], n: list[int]) -> dict[str, Any]:
    """float32; Input gets the LoD."""
    values: dict[str, Any] = {k: v.astype(np.float32) for k, v in inputs.items()}
    values["Input"] = LoDTensor(values["Input"], lod_from_lengths([n]))
    return values


def output(values: np.ndarray, n: list[int]) -> LoDTensor:
    """An output of as many rows as Input has."""
    return LoDTensor(values.astype(np.float32), lod_from_lengths([n]))


def walk(n: list[int], reverse: bool) -> list[list[int]]:
    """Rows of each sequence, in the order in which they are walked through."""
    ends = np.cumsum([0, *n]).tolist()
    rows = [list(range(a, b)) for a, b in itertools.pairwise(ends)]
    return [r[::-1] for r in rows] if reverse else rows
