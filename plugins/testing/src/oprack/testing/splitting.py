"""check_splitting: an op's rule of splitting, tried on ranks that are threads: each signature against the whole."""

from __future__ import annotations

import functools
import itertools
import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from oprack.eager_tensor import Tensor
from oprack.errors import OprackError
from oprack.interpreter.modes import current_mode
from oprack.interpreter.op_expr import OpExpr
from oprack.op.attrs import COMMON_ATTRS
from oprack.op.sbp import Sbp, SbpContext, Signature, broadcast
from oprack.packs.manager import default_manager
from oprack.parallel.communicator import Communicator
from oprack.parallel.eager.sequences import whole_lod
from oprack.parallel.layouts.signatures import candidates
from oprack.parallel.world import placement
from oprack.tensor import LoDTensor
from oprack.testing.worlds import ThreadWorld
from oprack.types import EMPTY_VAR

if TYPE_CHECKING:
    from oprack.testing.fuzz.examples.calls import OpCall

TOLERANCE = {"float16": 5e-2, "bfloat16": 2e-1, "float32": 2e-5, "complex64": 2e-5}
"""Relative to the largest element; other dtypes 1e-10. Sums over parts are taken in another order."""


def check_splitting(call: OpCall, ranks: Sequence[int] = (2, 3)) -> tuple[int, list[str]]:
    """Compute an op on parts, by each signature of its rule, and compare outputs and gradients with the whole.

    Args:
        call: The op with inputs and attributes.
        ranks: Numbers of ranks.

    Returns:
        (How many signatures that split something were tried, what differs.)
    """
    expr, values = expression(call)
    if expr is None or expr.info.sbp is None:
        return 0, []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            reference = _computed(expr, [leaf(v) for v in values])
        except OprackError:
            return 0, []  # the case is of an error, or needs what only a program has
        tried, found = 0, []
        for size in ranks:
            for signature in _signatures(expr, values, reference, size):
                tried += bool(signature.inputs)
                try:
                    got = ThreadWorld(size).run(functools.partial(_on_ranks, expr, values, signature))[0]
                except Exception as e:
                    found.append(f"op {call.type}, {_words(signature)} on {size} ranks: {type(e).__name__}: {e}")
                    continue
                reason = _difference(reference, got)
                if reason:
                    found.append(f"op {call.type}, {_words(signature)} on {size} ranks: {reason}")
    return tried, found


def expression(call: OpCall) -> tuple[OpExpr | None, list[Any]]:
    """A call as eager ones are described.

    Args:
        call: The op with inputs and attributes.

    Returns:
        (The expression, None where an input is no LoDTensor; the values of its inputs, None for one that is absent).
    """
    info = default_manager().op_info(call.type)
    values = [call.values.get(n) for s in info.proto.inputs for n in call.inputs.get(s, ())]
    dense = [v is None or isinstance(v, LoDTensor) for v in values]
    if not all(dense):
        return None, []
    attrs = {k: v for k, v in call.attrs.items() if k in info.proto.attrs and k not in COMMON_ATTRS}
    inputs = tuple((s, len(call.inputs[s])) for s in info.proto.inputs if call.inputs.get(s))
    outputs = tuple(
        (s, tuple(n != EMPTY_VAR for n in call.outputs[s])) for s in info.proto.outputs if call.outputs.get(s)
    )
    checked = info.checker.check(attrs) if info.checker is not None else attrs
    return OpExpr(info, checked, inputs, outputs, flat=True), values


def leaf(value: LoDTensor | None) -> Tensor | None:
    """A tensor of its own memory, whose gradient is asked for where it has one."""
    import oprack

    if value is None:
        return None
    tensor = oprack.to_tensor(value.array.copy(), lod=value.lod or None)
    if tensor._meta.differentiable:
        tensor.requires_grad = True
    return tensor


def _computed(expr: OpExpr, args: Sequence[Tensor | None]) -> tuple[list[Any], list[Any]]:
    """Arrays of the outputs that a call shows, and of the gradients of sum(outputs * fixed numbers)."""
    made = current_mode().interpreter.apply(expr, args)
    shown = []
    k = 0
    for slot, flags in expr.outputs:
        if not expr.proto.outputs[slot].intermediate:
            shown += [y for y in made[k : k + len(flags)] if y is not None]
        k += len(flags)
    outputs = [y.numpy() for y in shown] + [np.array([x for level in y.lod for x in level]) for y in shown]
    starts = [y for y in shown if y.requires_grad]
    if starts:
        from oprack.autograd import backward

        backward(starts, [_cotangent(y) for y in starts])
    gradients = [None if a is None or a.grad is None else a.grad.numpy() for a in args]
    return outputs, gradients


def _cotangent(y: Tensor) -> Tensor:
    import oprack

    values = np.cos(np.arange(y.size, dtype=np.float64)).reshape(y.shape).astype(y._meta.dtype)
    layout = y.layout
    start = oprack.to_tensor(values, lod=whole_lod(y) or None)  # of ops that are their own gradient it is an input
    return start if layout is None else start.to_global(layout.placement, "B", from_whole=True)


def _signatures(expr: OpExpr, values: Sequence[Any], reference: Any, ranks: int) -> Iterator[Signature]:
    """The signatures of the op for these inputs that leave no rank without a part."""
    made = iter(reference[0])
    dims: dict[str, list[Any]] = {}
    for (slot, _), v in zip(_slots(expr.inputs), values, strict=True):
        dims.setdefault(slot, []).append(None if v is None else v.array.shape)
    for slot, flags in expr.outputs:
        intermediate = expr.proto.outputs[slot].intermediate
        values_made = [None if intermediate or not wanted else next(made, None) for wanted in flags]
        # The last ones may be None: scratch of a library, which kernels never write.
        dims[slot] = [None if v is None else v.shape for v in values_made]
    context = SbpContext(expr.type, expr.attrs, dims)
    found = candidates(expr.info.sbp, context)
    if any(s.random for s in found):  # parts draw other numbers than the whole
        return
    for signature in found:
        shapes = [
            (slot, None if v is None else v.array.shape)
            for (slot, _), v in zip(_slots(expr.inputs), values, strict=True)
        ]
        if signature.shared % ranks == 0 and all(
            _feasible(signature.inputs.get(slot, broadcast), shape, ranks) for slot, shape in shapes
        ):
            yield signature


def _slots(arity: Sequence[tuple[str, int]]) -> list[tuple[str, int]]:
    return list(itertools.chain.from_iterable([(slot, i) for i in range(n)] for slot, n in arity))


def _feasible(sbp: Sbp, shape: Sequence[int] | None, ranks: int) -> bool:
    return shape is None or sbp.kind != "S" or (sbp.dim < len(shape) and shape[sbp.dim] >= ranks)


def _on_ranks(
    expr: OpExpr, values: Sequence[Any], signature: Signature, rank: Communicator
) -> tuple[list[Any], list[Any]]:
    """Outputs and gradients of the call on parts that lie as the signature says, as wholes."""
    grid = placement()  # of this rank's world
    leaves, args = [], []
    for (slot, _), value in zip(_slots(expr.inputs), values, strict=True):
        own = leaf(value)
        leaves.append(own)
        sbp = signature.inputs.get(slot, broadcast)
        if own is not None and sbp.kind == "P" and not own._meta.differentiable:
            sbp = broadcast
        args.append(None if own is None else own.to_global(grid, sbp, from_whole=True))
    outputs, _ = _computed(expr, args)
    return outputs, [None if a is None or a.grad is None else a.grad.numpy() for a in leaves]


def _difference(want: tuple[list[Any], list[Any]], got: tuple[list[Any], list[Any]]) -> str:
    for what, wanted, found in (("output", want[0], got[0]), ("gradient", want[1], got[1])):
        for k, (a, b) in enumerate(zip(wanted, found, strict=True)):
            if (a is None) != (b is None):
                return f"{what} {k} is {'absent' if b is None else 'there'}"
            if a is None:
                continue
            if a.shape != b.shape or a.dtype != b.dtype:
                return f"{what} {k} is {b.dtype}{list(b.shape)}; expected {a.dtype}{list(a.shape)}"
            tolerance = TOLERANCE.get(str(a.dtype), 1e-10)
            x, y = (v.astype(np.complex128 if v.dtype.kind == "c" else np.float64) for v in (a, b))
            scale = max(1.0, float(np.abs(x[np.isfinite(x)]).max(initial=0.0)))
            if not np.allclose(x, y, rtol=tolerance, atol=tolerance * scale, equal_nan=True):
                worst = np.nanmax(np.abs(np.where(np.isfinite(x), x - y, 0)))
                return f"{what} {k} differs by {worst:.3g}"
    return ""


def _words(signature: Signature) -> str:
    ins: Mapping[str, Sbp] = signature.inputs
    return f"{dict(ins) or 'all whole'} -> {dict(signature.outputs) or 'all whole'}"
