"""What other rules of ops say to frameworks: of a batch of calls, and of half precision."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from oprack import amp
from oprack.bridge.abstract import Abstract
from oprack.cache import Cache
from oprack.interpreter.op_expr import OpExpr
from oprack.op.sbp import Sbp, SbpContext, Signature, split
from oprack.packs.changes import on_change

_batches, _casts = Cache(4096), Cache(4096)
on_change(_batches.clear)
on_change(_casts.clear)


def takes_batches(expr: OpExpr, args: Sequence[Abstract | None], results: Sequence[Abstract | None]) -> bool:
    """Whether one call with a dim more in front, of all tensors, gives what calls of each example give.

    The op's rule of splitting says so where any dim may be split: then each element is computed by itself.

    Args:
        expr: A call of one example.
        args: Its arguments; None for absent ones.
        results: Its results.

    Returns:
        Whether; False where no rule says it.
    """
    shapes = {a.shape for a in (*args, *results) if a is not None}
    if expr.info.sbp is None or len(shapes) != 1 or None in (*shapes, *args, *results):
        return False
    rank = len(next(iter(shapes)) or ()) + 1
    found: bool | None = _batches[expr, rank]
    if found is None:
        found = _batches[expr, rank] = _is_pointwise(expr, rank)
    return found


def _is_pointwise(expr: OpExpr, rank: int) -> bool:
    assert expr.info.sbp is not None
    slots = [(s, n) for s, n in expr.inputs if n] + [(s, len(flags)) for s, flags in expr.outputs if flags]
    if any(n != 1 for _, n in slots):
        return False
    signatures = expr.info.sbp(SbpContext(expr.type, expr.attrs, {s: [(2,) * rank] for s, _ in slots}))
    return all(any(_splits(s, [n for n, _ in slots], split(d)) for s in signatures) for d in range(rank))


def _splits(signature: Signature, slots: Sequence[str], how: Sbp) -> bool:
    """Whether a signature splits all tensors in one dim, and asks for nothing else."""
    if signature.random or signature.sizes or signature.attrs or signature.via or signature.by_sequence is not None:
        return False
    sides = {**signature.inputs, **signature.outputs}
    return all(sides.get(slot) == how for slot in slots)


def autocast_dtype(op_type: str, dtypes: Collection[str], half: str) -> str | None:
    """The dtype that `oprack.amp.autocast` casts the floating arguments of an op to, on the CPU.

    Args:
        op_type: The op.
        dtypes: Their dtypes.
        half: "float16" or "bfloat16".

    Returns:
        The dtype; None where they stay as they are, as they do where no pack brings autocast.
    """
    key = op_type, frozenset(dtypes), half
    if key not in _casts:
        try:
            rule = amp.autocast(half)
        except AttributeError:
            _casts[key] = None
        else:
            _casts[key] = rule.target(op_type, dtypes, "cpu")
    found: str | None = _casts[key]
    return found
