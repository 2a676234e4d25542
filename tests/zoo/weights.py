"""Weights that NumPy remakes: what is kept of a net's parameters is how each was drawn.

A recipe lists, for each parameter of a program, `name`, `shape`, `dtype`, and `gen` with `seed`, `mean` and `std`. The
stream of RandomState is frozen, so that a recipe gives the same bits everywhere. Parameters that are not drawn, such as
the statistics of batch norms and tables of positions, have no `gen` and lie in `consts.npz` by their names.
"""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

RECIPE, CONSTS = "params.json", "consts.npz"


def draw(gen: dict[str, Any], shape: list[int], dtype: str) -> np.ndarray:
    """A parameter: normal, with the seed, the mean and the deviation of its recipe."""
    numbers = np.random.RandomState(gen["seed"]).standard_normal(int(np.prod(shape, dtype=np.int64)))
    return (numbers * gen["std"] + gen["mean"]).astype(dtype).reshape(shape)


def generator(net: str, key: str, initial: np.ndarray) -> dict[str, Any] | None:
    """How to draw a parameter with the spread of its initial value; None for what is to stay as it is.

    Args:
        net: Name of the net; it and `key` make the seed.
        key: Name of the parameter in the net, the same in each version of Paddle.
        initial: What the net's own initialisation made.

    Returns:
        `seed`, `mean` and `std`.
    """
    if initial.dtype != np.float32 or not initial.size:
        return None
    mean, std = float(initial.mean(dtype=np.float64)), float(initial.std(dtype=np.float64))
    if initial.size == 1 or std < 1e-6:  # biases of 0 and scales of 1 would hide a wrong use of them
        std = 0.01 if initial.ndim > 1 else 0.05
    return {"seed": zlib.crc32(f"{net}/{key}".encode()), "mean": float(f"{mean:.4g}"), "std": float(f"{std:.4g}")}


def values(folder: Path) -> Iterator[tuple[str, np.ndarray]]:
    """Names and values of all parameters of a net's folder."""
    with np.load(folder / CONSTS, allow_pickle=False) as consts:
        for entry in json.loads((folder / RECIPE).read_text("utf-8")):
            if entry["gen"]:
                yield entry["name"], draw(entry["gen"], entry["shape"], entry["dtype"])
            else:
                yield entry["name"], consts[entry["name"]]


def digest(value: np.ndarray) -> str:
    """The first digits of the hash of a parameter's bytes."""
    return hashlib.sha256(np.ascontiguousarray(value).tobytes()).hexdigest()[:16]
