"""Calls the kernel of an operator on the reference path, and the next one where it declines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from oprack.errors import PreconditionNotMetError
from oprack.kernel import Candidate
from oprack.kernel.invoke import ObjectArguments, call, invoke
from oprack.runtime import checks
from oprack.runtime.describe import no_buffer_text
from oprack.runtime.kernel_context import KernelContext
from oprack.tensor import LoDTensor, ShapeOnly

if TYPE_CHECKING:
    from oprack.runtime.kernel_operator import OperatorWithKernel
    from oprack.runtime.run_context import RunContext

Values = Mapping[str, Sequence[Any]]


def compute(
    op: OperatorWithKernel,
    best: Candidate,
    values: Values,
    attrs: Mapping[str, Any],
    run: RunContext,
    watched: bool,
    whole: bool,
) -> tuple[Candidate, Any]:
    """Call the first kernel of a chain that does not decline.

    Args:
        op: the operator; it notes who declined and why.
        best: the chain.
        values: inputs by slot, at the kernel's place.
        attrs: all attributes.
        run: the run.
        watched: whether to look that a kernel that declines has written nothing.
        whole: as checks.fingerprint takes it.

    Returns:
        The kernel that computed, and what it returned.

    Raises:
        KernelNotFoundError: all declined.
        InputOverwrittenError: one wrote before it declined.
    """

    def one(candidate: Candidate) -> Any:
        # A kernel that writes and then declines would leave the next one a changed input.
        watch = watched and candidate.spec.may_decline
        before = checks.fingerprint(op, values, whole=whole, written=True) if watch else None
        result = call(candidate, _Given(op, candidate, values, attrs, run))
        if before is not None and result is NotImplemented:
            checks.check_declined(op, candidate, values, before, whole=whole)
        return result

    chosen, result, op.declined = invoke(op.type, best, _first_numel(best, values), one)
    return chosen, result


def _first_numel(best: Candidate, values: Values) -> int:
    """Elements of a kernel's first input; 0 when it has none."""
    first = next(iter(values.get(best.signature.inputs[0][0], ())), None) if best.signature.inputs else None
    return first.array.size if isinstance(first, LoDTensor) else 0


class _Given(ObjectArguments):
    """The inputs and attributes of an operator in one run."""

    def __init__(
        self,
        op: OperatorWithKernel,
        candidate: Candidate,
        values: Values,
        attrs: Mapping[str, Any],
        run: RunContext,
    ) -> None:
        self._op, self._candidate, self._values, self._attrs, self._run = op, candidate, values, attrs, run

    def values(self, slot: str) -> Sequence[Any]:
        return self._values.get(slot, ())

    def value(self, slot: str, i: int, value: Any, container: str) -> Any:
        op = self._op
        proto = op.info.proto.inputs[slot]
        if value is None and not proto.dispensable and not proto.duplicable:
            raise PreconditionNotMetError(
                f"op {op.type}: input {slot} (variable {op.inputs[slot][0]!r}) holds no value; feed it, load "
                "it, or run the op that writes it first"
            )
        if not isinstance(value, LoDTensor):
            return value
        if slot in op.info.no_need_buffer_vars:
            # of this input the op needs no more than shape and LoD
            array = ShapeOnly(value.array, no_buffer_text(op.type, slot, self._candidate))
            value = LoDTensor(array, value.lod, place=value.place, check=False)
        return value if container else value.array

    def attr(self, name: str) -> Any:
        return self._attrs[name]

    def injected(self, name: str) -> Any:
        if name == "xp":
            return self._run.device.xp
        if name == "out":
            return inplace_buffer(self._op, self._values)
        lods = {s: [v.lod if isinstance(v, LoDTensor) else [] for v in vs] for s, vs in self._values.items()}
        return KernelContext(self._op, lods, self._run, self._attrs)


def inplace_buffer(op: OperatorWithKernel, values: Values) -> Any:
    """The input's own buffer when the first output is that input and nobody else sees its memory.

    Not where the op has more outputs: it could be interrupted when one is written and the others are on their way.
    """
    x = op.first_inplace
    value = values[x][0] if x is not None and len(op.outputs) == 1 else None
    if isinstance(value, LoDTensor) and not value.shared and value.array.flags.c_contiguous:
        flags = value.array.flags
        # A view's memory may be seen through its base.
        owned = flags.owndata and flags.writeable if isinstance(value.array, np.ndarray) else True
        return value.array if owned else None
    return None
