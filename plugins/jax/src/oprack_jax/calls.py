"""Calls of ops with arrays of jax: at once where values are known, from compiled functions where jax traces."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from oprack.bridge import Abstract, gradient_of, infer_abstract, require_known, run, takes_batches
from oprack.cache import Cache
from oprack.errors import InvalidLoDError, OprackError, UnimplementedError
from oprack.interpreter.op_expr import OpExpr

from oprack_jax.arrays import abstract_of, array_of, from_jax, struct_of, to_jax
from oprack_jax.ffi import call
from oprack_jax.sequences import Lod, offsets_of, values_of, with_offsets

_by_offsets = Cache(1024)


class _Results(NamedTuple):
    """The results of a call without values: shapes and dtypes, and offsets."""

    structs: list[jax.ShapeDtypeStruct]
    lods: list[Lod]


def apply(expr: OpExpr, items: Sequence[Any]) -> Sequence[Any]:
    """Call an op.

    Args:
        expr: The call, flat.
        items: Its arrays or Sequences, which may be traced.

    Returns:
        Its results one after the other, as arrays or Sequences.
    """
    arrays, lods = [values_of(x) for x in items], tuple(offsets_of(x) for x in items)
    if any(isinstance(a, jax.core.Tracer) for a in arrays):
        found = _traced(expr, lods, *[jnp.asarray(a) for a in arrays])
        return list(map(with_offsets, found, _results(expr, lods, arrays).lods))
    results = run(expr, list(map(from_jax, arrays, lods)))
    if all(y is not None for y in results):
        return [with_offsets(to_jax(y), _lod_of(y)) for y in results]
    made = _results(expr, lods, arrays)
    return list(map(with_offsets, map(jnp.asarray, _filled(results, made.structs)), made.lods))


@partial(jax.custom_vjp, nondiff_argnums=(0, 1))
def _traced(expr: OpExpr, lods: tuple[Lod, ...], *arrays: Any) -> Any:
    """A call whose values are known when the compiled function runs; `lods` are the offsets of each array."""
    made = _results(expr, lods, arrays)
    ranks = [a.ndim for a in arrays]

    def host(*values: Any) -> Any:
        results = run(expr, list(map(from_jax, values, lods)))
        for y, lod in zip(results, made.lods, strict=True):
            if y is not None and _lod_of(y) != lod:
                raise InvalidLoDError(
                    f"op {expr.type}: a result has the offsets {_lod_of(y)}, but had {lod} when jax traced the call; "
                    "they depend on values, so call it outside of jax.jit, grad and vmap"
                )
        batch = values[0].shape[: values[0].ndim - ranks[0]] if values else ()
        return _filled(results, made.structs, batch)

    given = [abstract_of(a) for a in arrays]
    results = [Abstract(s.shape, s.dtype.name) for s in made.structs]
    whole = not any((*lods, *made.lods)) and takes_batches(expr, given, results)
    key = expr, lods, tuple(given), tuple(zip(made.structs, made.lods, strict=True))
    return call(key, host, made.structs, arrays, "broadcast_all" if whole else "sequential")


def _forward(expr: OpExpr, lods: tuple[Lod, ...], *arrays: Any) -> Any:
    results = _traced(expr, lods, *arrays)
    return results, (arrays, results)


def _backward(expr: OpExpr, lods: tuple[Lod, ...], kept: Any, cotangents: Any) -> Any:
    arrays, results = kept
    made = _results(expr, lods, arrays).lods
    sides = {"in": list(map(with_offsets, arrays, lods)), "out": list(map(with_offsets, results, made))}
    given, returned = ([abstract_of(values_of(x), len(offsets_of(x))) for x in side] for side in sides.values())
    wrt = [i for i, a in enumerate(arrays) if jnp.issubdtype(a.dtype, jnp.inexact)]
    gradient = gradient_of(expr, given, returned, wrt)
    saved = [sides[side][i] for side, i, _ in gradient.saved]
    arrived = [with_offsets(_conj(cotangents[j]), made[j]) for j in gradient.outputs]
    found = (
        gradient(saved, arrived, apply, lambda j: with_offsets(jnp.zeros_like(results[j]), made[j]))
        if not gradient.empty
        else []
    )
    by_position: list[Any] = [None] * len(arrays)
    for i, g in zip(gradient.wrt, map(values_of, found), strict=bool(found)):
        if g is not None:
            real = jnp.iscomplexobj(g) and not jnp.iscomplexobj(arrays[i])
            by_position[i] = g.real if real else _conj(g)
    return tuple(by_position)


_traced.defvjp(_forward, _backward)


def _conj(x: Any) -> Any:
    """jax's cotangents are linear in complex numbers, and oprack's are slopes; one is the conjugate of the other."""
    return jnp.conj(x) if jnp.iscomplexobj(x) else x


def _results(expr: OpExpr, lods: tuple[Lod, ...], arrays: Sequence[Any]) -> _Results:
    """The results of a call without values, by the op's rules, and by the offsets of its inputs."""
    given = [abstract_of(a, len(lod)) for a, lod in zip(arrays, lods, strict=True)]
    abstract = infer_abstract(expr, given)
    open_ = any(a is not None and any(isinstance(d, int) and d < 0 for d in a.shape or ()) for a in abstract)
    if any(a is not None and a.lod_level for a in abstract) or (any(lods) and open_):
        return _of_offsets(expr, lods, given, abstract)
    require_known(expr, abstract)
    if open_:
        raise _open(expr, [a.shape for a in abstract if a is not None])
    made = [struct_of(a) for a in abstract if a is not None]
    return _Results(made, [()] * len(made))


def _open(expr: OpExpr, shapes: Sequence[Any]) -> UnimplementedError:
    listed = ", ".join(str(list(s or ())) for s in shapes)
    return UnimplementedError(
        f"op {expr.type}: the size of a result depends on values ({listed}, where -1 is such a size), and jax asks "
        "for sizes when it traces; call it outside of jax.jit, grad and vmap"
    )


def _of_offsets(
    expr: OpExpr, lods: tuple[Lod, ...], given: Sequence[Abstract], abstract: Sequence[Abstract | None]
) -> _Results:
    """The results of a call with LoD: what two calls with the same offsets and other values have in common."""
    key = expr, lods, tuple(given)
    found: _Results | None = _by_offsets[key]
    if found is None:
        try:
            zeros, ones = (_tried(expr, lods, given, abstract, fill) for fill in (np.zeros, np.ones))
        except OprackError as error:  # such as offsets that a tensor holds
            raise _open(expr, [a.shape for a in abstract if a is not None]) from error
        if zeros != ones:
            raise _open(expr, [(-1,) if a != b else a.shape for a, b in zip(zeros.structs, ones.structs, strict=True)])
        found = _by_offsets[key] = zeros
    return found


def _tried(
    expr: OpExpr, lods: tuple[Lod, ...], given: Sequence[Abstract], abstract: Sequence[Abstract | None], fill: Any
) -> _Results:
    """The results of a call with these offsets and one number everywhere."""
    tensors = [from_jax(fill(a.shape, struct_of(a).dtype), lod) for a, lod in zip(given, lods, strict=True)]
    pairs = [(y, a) for y, a in zip(run(expr, tensors), abstract, strict=True) if a is not None]
    # what a kernel leaves out is empty where no rule says its size
    structs = [
        struct_of(a._replace(shape=tuple(max(d, 0) for d in a.shape or (0,)), dtype=a.dtype or "float32"))
        if y is None
        else jax.ShapeDtypeStruct(array_of(y).shape, array_of(y).dtype)
        for y, a in pairs
    ]
    return _Results(structs, [() if y is None else _lod_of(y) for y, _ in pairs])


def _lod_of(y: Any) -> Lod:
    return tuple(tuple(int(n) for n in level) for level in y._lod)


def _filled(
    results: Sequence[Any], structs: Sequence[jax.ShapeDtypeStruct], batch: tuple[int, ...] = ()
) -> list[np.ndarray]:
    """Results as arrays, with zeros for what a kernel left out, such as scratch memory of another library."""
    pairs = zip(results, structs, strict=True)
    return [
        np.zeros((*batch, *s.shape), s.dtype)
        if y is None
        else np.ascontiguousarray(array_of(y)).reshape((*batch, *s.shape))
        for y, s in pairs
    ]
