"""jax's own checks of ops, on the cases that packs have: what `oprack check` and the tests ask."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.test_util import check_grads
from oprack.bridge import gradient_of, infer_abstract
from oprack.errors import KernelNotFoundError, KernelResultError, OprackError
from oprack.testing.bridges import BridgedCase, Checked, at_kink, check_calls, first_line
from oprack.testing.fuzz.examples.calls import OpCall

from oprack_jax import ops
from oprack_jax.arrays import abstract_of

JIT, BOTH = "jit", "jit and check_grads"


def check_op(op_type: str, calls: Sequence[OpCall], tries: int = 2) -> Checked:
    """Compare eval_shape and jit with the call itself, and run jax.test_util.check_grads at float64, for an op.

    Args:
        op_type: The op.
        calls: Calls of it.
        tries: How many calls are checked.

    Returns:
        What was found.
    """
    with jax.enable_x64(True):
        return check_calls(op_type, calls, _check, tries)


class _JaxCase:
    """A case as a function of those of its arrays to which gradients flow back."""

    def __init__(self, case: BridgedCase) -> None:
        self.case, self.function = case, getattr(ops, case.op.type)
        self.arrays = [jnp.asarray(a) for a in case.flat]
        self.attrs = case.attrs | ({} if case.counts is None else {"num_outputs": _of_known_size(case)})
        self.reached = case.reached()

    def all(self, *arrays: Any) -> list[Any]:
        """Every result, of all arrays."""
        return jax.tree.leaves(self.function(**self.case.replaced(arrays), **self.attrs))

    def floating(self, *moved: Any) -> list[Any]:
        """The floating results, of the arrays that have gradients."""
        given = list(self.arrays)
        for i, x in zip(self.reached, moved, strict=True):
            given[i] = x
        return [y for y in self.all(*given) if jnp.issubdtype(y.dtype, jnp.inexact)]

    def as_arrays(self, *moved: np.ndarray) -> list[np.ndarray]:
        """The same function of arrays of NumPy."""
        return [np.asarray(y) for y in self.floating(*map(jnp.asarray, moved))]


def _of_known_size(case: BridgedCase) -> list[int]:
    """How many tensors each output gets, without scratch memory that may be left out and whose size is open."""
    expr, order = case.op.expression(case.values, case.attrs, case.counts)
    sizes = case.op.formed(expr, infer_abstract(expr, [abstract_of(a) for a in order]))
    parts = [part if o.listed else [part] for o, part in zip(case.op.outputs, sizes, strict=True)]
    open_ = [any(-1 in (a.shape or ()) for a in part) for part in parts]
    pairs = zip(case.op.outputs, case.counts or (), open_, strict=True)
    return [0 if o.slot.dispensable and is_open else n for o, n, is_open in pairs]


def _check(call: OpCall) -> Checked:
    case = _JaxCase(BridgedCase(call))
    try:
        plain = case.all(*case.arrays)
    except (KernelNotFoundError, KernelResultError):  # none for double precision, as int8 and bfloat16 have it
        case = _JaxCase(BridgedCase(call, wide=False))
        plain = case.all(*case.arrays)
    again = case.all(*case.arrays)
    shapes = [(s.shape, s.dtype) for s in jax.eval_shape(case.all, *case.arrays)]
    if shapes != [(y.shape, y.dtype) for y in plain]:
        return Checked(call.type, JIT, f"eval_shape gives {shapes}, the call {[(y.shape, y.dtype) for y in plain]}")
    compiled = jax.jit(case.all)(*case.arrays)
    repeats = all(np.allclose(a, b, equal_nan=True) for a, b in zip(plain, again, strict=True))  # else it draws
    if repeats and not all(np.allclose(a, b, equal_nan=True) for a, b in zip(plain, compiled, strict=True)):
        return Checked(call.type, JIT, "jit gives other numbers than the call")
    return _gradient(call, case) if repeats else Checked(call.type, JIT, "")


def _gradient(call: OpCall, case: _JaxCase) -> Checked:
    moved = [case.arrays[i] for i in case.reached]
    if not moved or any(x.dtype != jnp.float64 for x in moved) or at_kink(case.as_arrays, list(map(np.asarray, moved))):
        return Checked(call.type, JIT, "")

    def differentiable(*xs: Any) -> list[Any]:
        return [y for y, keep in zip(case.floating(*xs), kept, strict=True) if keep]

    kept = [True] * len(case.floating(*moved))
    try:
        kept = [_has_gradient(case, moved, j) for j in range(len(kept))]
        if not any(kept):
            return Checked(call.type, JIT, "")
        check_grads(differentiable, moved, order=1, modes=["rev"], atol=1e-4, rtol=1e-3, eps=1e-6)
    except OprackError:
        return Checked(call.type, JIT, "")  # a case in which the op refuses gradients
    except Exception as error:
        return Checked(call.type, BOTH, f"check_grads: {first_line(error)}")
    return Checked(call.type, BOTH, "")


def _has_gradient(case: _JaxCase, moved: Sequence[Any], j: int) -> bool:
    """Whether floating result j has a gradient by the op's definition: of others no gradient flows back."""
    expr, order = case.case.op.expression(case.case.values, case.case.attrs, case.case.counts)
    abstract = [abstract_of(a) for a in order]
    results = infer_abstract(expr, abstract)
    gradient = gradient_of(expr, abstract, results, [i for i, a in enumerate(order) if a.dtype.kind in "fc"])
    shown = case.case.op.shown(case.case.op.formed(expr, list(range(len(results)))))
    flat = [
        k
        for k in jax.tree.leaves(shown)
        if results[k] is not None and results[k].dtype.startswith(("float", "complex"))
    ]
    return flat[j] in gradient.outputs


__all__ = ["BOTH", "JIT", "check_op"]
