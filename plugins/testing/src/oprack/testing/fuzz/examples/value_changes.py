"""Changes of the values that an op or a net is fed: other sizes, ranks, dtypes, LoD, and odd numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from oprack.tensor import LoDTensor
from oprack.testing.fuzz.examples.strategies import st
from oprack.testing.fuzz.examples.values import DTYPES, FILLS, ODD, SIZES, lod_of, refilled, with_odd

_MOST_ELEMENTS = 1 << 15
Draw = Callable[..., Any]
Tensors = dict[str, LoDTensor]


def change_values(draw: Draw, rng: np.random.Generator, values: dict[str, Any], change: str) -> dict[str, Any]:
    """Values with one thing changed; those that are no dense tensors stay."""
    tensors = {n: v for n, v in values.items() if isinstance(v, LoDTensor)}
    if not tensors:  # an op may read nothing, or tensor arrays alone
        return values
    name = draw(st.sampled_from(list(tensors)))
    return values | _VALUE_CHANGES[change](draw, rng, tensors, name)


def _change_sizes(draw: Draw, rng: np.random.Generator, tensors: Tensors, name: str) -> Tensors:
    """Dims of one size get another one, in all tensors: sizes that belong together stay equal."""
    sizes = sorted({d for t in tensors.values() for d in t.shape})
    return _with_size(draw, rng, tensors, sizes, first=False)


def _change_batch(draw: Draw, rng: np.random.Generator, tensors: Tensors, name: str) -> Tensors:
    return _with_size(draw, rng, tensors, list(tensors[name].shape[:1]), first=True)


def _with_size(draw: Draw, rng: np.random.Generator, tensors: Tensors, sizes: Sequence[int], first: bool) -> Tensors:
    if not sizes:
        return {}
    old, new = draw(st.sampled_from(sizes)), draw(st.sampled_from(SIZES))
    return {n: _resized(rng, t, old, new, first) for n, t in tensors.items()}


def _change_dim(draw: Draw, rng: np.random.Generator, tensors: Tensors, name: str) -> Tensors:
    shape = list(tensors[name].shape)
    if not shape:
        return {}
    shape[draw(st.integers(0, len(shape) - 1))] = draw(st.sampled_from(SIZES))
    return {name: _reshaped(rng, tensors[name], shape)}


def _change_rank(draw: Draw, rng: np.random.Generator, tensors: Tensors, name: str) -> Tensors:
    shape = list(tensors[name].shape)
    at = draw(st.integers(0, len(shape)))
    shape = shape[:at] + shape[at + 1 :] if shape and draw(st.booleans()) else [*shape[:at], 1, *shape[at:]]
    return {name: _reshaped(rng, tensors[name], shape)}


def _change_dtype(draw: Draw, rng: np.random.Generator, tensors: Tensors, name: str) -> Tensors:
    return {name: _as(rng, tensors[name], draw(st.sampled_from(DTYPES)))}


def _change_dtypes(draw: Draw, rng: np.random.Generator, tensors: Tensors, name: str) -> Tensors:
    """All tensors of one dtype get another one."""
    dtype = draw(st.sampled_from(DTYPES))
    return {n: _as(rng, t, dtype) for n, t in tensors.items() if t.dtype == tensors[name].dtype}


def _change_fill(draw: Draw, rng: np.random.Generator, tensors: Tensors, name: str) -> Tensors:
    tensor, fill = tensors[name], draw(st.sampled_from(FILLS[1:]))
    array = refilled(rng, tensor.array, tensor.shape, tensor.dtype, fill)
    return {name: LoDTensor(array, tensor.lod, check=False)}


def _change_to_odd(draw: Draw, rng: np.random.Generator, tensors: Tensors, name: str) -> Tensors:
    odd, share = draw(st.sampled_from(ODD)), draw(st.sampled_from([0.0, 0.3, 1.0]))
    return {name: LoDTensor(with_odd(rng, tensors[name].array, odd, share), tensors[name].lod, check=False)}


def _change_lod(draw: Draw, rng: np.random.Generator, tensors: Tensors, name: str) -> Tensors:
    old = tensors[name].lod
    if not old:
        return {}
    empty = draw(st.lists(st.sampled_from(["first", "middle", "last"]), max_size=3))
    lod = [*old[:-1], lod_of(rng, tensors[name].shape[0], len(old[-1]) - 1 - len(empty), empty)]
    if len(old) > 1 and len(lod[-1]) != len(old[-1]):  # the level above counts sequences that are gone
        lod = lod[-1:]
    return {n: _with_lod(t, old, lod) for n, t in tensors.items()}


_VALUE_CHANGES: Mapping[str, Callable[[Draw, np.random.Generator, Tensors, str], Tensors]] = {
    "sizes": _change_sizes,
    "batch": _change_batch,
    "dim": _change_dim,
    "rank": _change_rank,
    "dtype": _change_dtype,
    "dtypes": _change_dtypes,
    "fill": _change_fill,
    "odd": _change_to_odd,
    "lod": _change_lod,
}


def _with_lod(tensor: LoDTensor, old: list[list[int]], new: list[list[int]]) -> LoDTensor:
    """Tensors that had the same sequences have the same ones afterwards."""
    same = tensor.lod == old and tensor.shape[:1] == (new[-1][-1],)
    return LoDTensor(tensor.array, new, check=False) if same else tensor


def _resized(rng: np.random.Generator, tensor: LoDTensor, old: int, new: int, first: bool) -> LoDTensor:
    shape = [new if d == old and (not first or i == 0) else d for i, d in enumerate(tensor.shape)]
    return _reshaped(rng, tensor, shape) if shape != list(tensor.shape) else tensor


def _reshaped(rng: np.random.Generator, tensor: LoDTensor, shape: Sequence[int]) -> LoDTensor:
    if np.prod(shape, dtype=np.float64) > _MOST_ELEMENTS:
        return tensor
    array = refilled(rng, tensor.array, shape, tensor.dtype, "repeated")
    lod = tensor.lod
    if lod and tuple(shape[:1]) != tensor.shape[:1]:
        inner = lod_of(rng, shape[0] if shape else 0, len(lod[-1]) - 1, ())
        lod = [*lod[:-1], inner] if len(inner) == len(lod[-1]) else [inner]
    return LoDTensor(array, lod if shape else [], check=False)


def _as(rng: np.random.Generator, tensor: LoDTensor, dtype: str) -> LoDTensor:
    return LoDTensor(refilled(rng, tensor.array, tensor.shape, dtype, "repeated"), tensor.lod, check=False)
