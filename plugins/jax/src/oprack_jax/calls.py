"""Calls of ops with arrays of jax: at once where values are known, by callbacks where jax traces."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from oprack.bridge import gradient_of, infer_abstract, require_known, run
from oprack.errors import UnimplementedError
from oprack.interpreter.op_expr import OpExpr

from oprack_jax.arrays import abstract_of, array_of, from_jax, struct_of, to_jax


def apply(expr: OpExpr, arrays: Sequence[Any]) -> Sequence[Any]:
    """Call an op.

    Args:
        expr: The call, flat.
        arrays: Its arrays, which may be traced.

    Returns:
        Its results one after the other, as arrays.
    """
    if any(isinstance(a, jax.core.Tracer) for a in arrays):
        found: Sequence[Any] = _traced(expr, *[jnp.asarray(a) for a in arrays])
        return found
    results = run(expr, [from_jax(a) for a in arrays])
    if all(y is not None for y in results):
        return [to_jax(y) for y in results]
    return [jnp.asarray(y) for y in _filled(results, _results(expr, arrays))]


@partial(jax.custom_vjp, nondiff_argnums=(0,))
def _traced(expr: OpExpr, *arrays: Any) -> Any:
    """A call whose values are known when the compiled function runs."""
    structs = _results(expr, arrays)

    def host(*values: Any) -> Any:
        return _filled(run(expr, [from_jax(v) for v in values]), structs)

    return jax.pure_callback(host, structs, *arrays, vmap_method="sequential")


def _forward(expr: OpExpr, *arrays: Any) -> Any:
    results = _traced(expr, *arrays)
    return results, (arrays, results)


def _backward(expr: OpExpr, kept: Any, cotangents: Any) -> Any:
    arrays, results = kept
    given, made = ([abstract_of(a) for a in side] for side in (arrays, results))
    wrt = [i for i, a in enumerate(arrays) if jnp.issubdtype(a.dtype, jnp.inexact)]
    gradient = gradient_of(expr, given, made, wrt)
    sides = {"in": arrays, "out": results}
    saved = [sides[side][i] for side, i, _ in gradient.saved]
    arrived = [_conj(cotangents[j]) for j in gradient.outputs]
    found = gradient(saved, arrived, apply, lambda j: jnp.zeros_like(results[j])) if not gradient.empty else []
    by_position: list[Any] = [None] * len(arrays)
    for i, g in zip(gradient.wrt, found, strict=bool(found)):
        if g is not None:
            real = jnp.iscomplexobj(g) and not jnp.iscomplexobj(arrays[i])
            by_position[i] = g.real if real else _conj(g)
    return tuple(by_position)


_traced.defvjp(_forward, _backward)


def _conj(x: Any) -> Any:
    """jax's cotangents are linear in complex numbers, and oprack's are slopes; one is the conjugate of the other."""
    return jnp.conj(x) if jnp.iscomplexobj(x) else x


def _results(expr: OpExpr, arrays: Sequence[Any]) -> list[jax.ShapeDtypeStruct]:
    """The results of a call without values, by the op's rules."""
    abstract = infer_abstract(expr, [abstract_of(a) for a in arrays])
    require_known(expr, abstract)
    if any(a is not None and any(isinstance(d, int) and d < 0 for d in a.shape or ()) for a in abstract):
        shapes = ", ".join(str(list(a.shape or ())) for a in abstract if a is not None)
        raise UnimplementedError(
            f"op {expr.type}: the size of a result depends on values ({shapes}, where -1 is such a size), and jax asks "
            "for sizes when it traces; call it outside of jax.jit, grad and vmap"
        )
    return [struct_of(a) for a in abstract if a is not None]


def _filled(results: Sequence[Any], structs: Sequence[jax.ShapeDtypeStruct]) -> list[np.ndarray]:
    """Results as arrays, with zeros for what a kernel left out, such as scratch memory of another library."""
    pairs = zip(results, structs, strict=True)
    return [
        np.zeros(s.shape, s.dtype) if y is None else np.ascontiguousarray(array_of(y)).reshape(s.shape)
        for y, s in pairs
    ]
