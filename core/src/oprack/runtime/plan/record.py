"""The record of an op's run, from which code is generated, and its shape rule there: asked about shapes not met yet."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from oprack.cache import Cache
from oprack.errors import KernelResultError
from oprack.python.containers import with_members
from oprack.python.records import dataclass
from oprack.runtime.infer import lists_elements
from oprack.runtime.kernel_call import is_promised
from oprack.tensor import LoDTensor, LoDTensorArray, SparseValue
from oprack.types import EMPTY_VAR

if TYPE_CHECKING:
    from oprack.kernel import Candidate
    from oprack.runtime.infer import Inferred
    from oprack.runtime.kernel_operator import OperatorWithKernel
    from oprack.runtime.run_context import RunContext

SHAPES = 4096
"""Combinations of shapes that are remembered; they come with the data."""
_AHEAD = 32  # answers to what was asked before its turn
Signature = tuple[Any, ...] | None
Promised = Mapping[tuple[str, int], Sequence[int]]
Answer = tuple[Promised, Any]
"""What a rule says, and the shapes of inputs for which it says so every time, or None."""
_UNKNOWN = (-1,)


def signature(value: Any) -> Signature:
    """What the choice of kernels depends on: class, dtype, place and number of LoD levels, never the shape."""
    if isinstance(value, LoDTensor):
        return (LoDTensor, value.array.dtype, len(value.lod), value.place)
    if isinstance(value, SparseValue):
        return (type(value), value.elements.dtype, value.place)
    if isinstance(value, LoDTensorArray):
        first = next((t for t in value if t is not None), None)
        return (LoDTensorArray, signature(first))
    return None if value is None else (type(value),)


@dataclass(frozen=True)
class OpRecord:
    """One op of a recorded run, without the memory of its values: containers, dtypes and LoD levels are enough.

    Attributes:
        op: The operator.
        chosen: Its kernel, linked to those that take over when it declines.
        inputs: Values by input slot, as they were before the data transform.
        result: What the kernel returned.
        outputs: Values by output slot.
        inferred: What the shape rule said.
        compilable: Whether generated code can do the same, which is so where nothing is transformed before the kernel
            or after it.
    """

    op: OperatorWithKernel
    chosen: Candidate
    inputs: Mapping[str, Sequence[Any]]
    result: Any
    outputs: Mapping[str, Sequence[Any]]
    inferred: Inferred
    compilable: bool

    @classmethod
    def of(
        cls,
        op: OperatorWithKernel,
        chosen: Candidate,
        inputs: Mapping[str, Sequence[Any]],
        prepared: Mapping[str, Sequence[Any]],
        result: Any,
        outputs: Mapping[str, Sequence[Any]],
        inferred: Inferred,
        moved: bool,
    ) -> OpRecord:
        """The record of a run.

        Args:
            op: As in the record.
            chosen: As in the record.
            inputs: Inputs by slot.
            prepared: The same after the data transform.
            result: What the kernel returned.
            outputs: Outputs by slot.
            inferred: As in the record.
            moved: Whether the kernel ran at another place than the run.

        Returns:
            The record.
        """
        same = all(g is p for s, values in prepared.items() for g, p in zip(inputs[s], values, strict=True))
        compilable = same and not moved and not _made_real(result, outputs)
        return cls(op, chosen, hollow(inputs), hollow(result), hollow(outputs), inferred, compilable)


def hollow(value: Any) -> Any:
    """A value of the same class, dtype and LoD levels without its memory, so that a record keeps nothing alive."""
    if isinstance(value, LoDTensor):
        return LoDTensor(np.empty(0, value.array.dtype), [[0]] * len(value.lod), check=False)
    if isinstance(value, SparseValue):
        pattern = [np.empty((*a.shape[:-1], 0), a.dtype) for a in value.pattern]
        return value.rebuilt(pattern, np.empty((0, *value.elements.shape[1:]), value.elements.dtype))
    if isinstance(value, LoDTensorArray):
        return LoDTensorArray()
    if isinstance(value, Mapping):
        return {k: hollow(v) for k, v in value.items()}
    if type(value) is list:
        return [hollow(v) for v in value]
    if isinstance(value, list | tuple):
        return with_members(value, map(hollow, value))
    if hasattr(value, "dtype") and not isinstance(value, np.generic):
        return np.empty(0, value.dtype)
    return value


def _made_real(result: Any, outputs: Mapping[str, Sequence[Any]]) -> bool:
    """Whether a complex gradient was cut to its real part."""
    returned = list(result.values()) if isinstance(result, dict) else result
    returned = returned if isinstance(returned, list | tuple) else [returned]
    if all(getattr(getattr(v, "dtype", None), "kind", "") != "c" for v in returned):
        return False
    return any(isinstance(v, LoDTensor) and v.array.dtype.kind != "c" for vs in outputs.values() for v in vs)


@contextmanager
def recording(run: RunContext, records: list[OpRecord]) -> Iterator[None]:
    """Within a with block, append a record of each op that runs on the reference path.

    Args:
        run: The run.
        records: Gets the records.
    """
    run.recorder = lambda *decided: records.append(OpRecord.of(*decided))
    try:
        yield
    finally:
        run.recorder = None


class ShapeCheck:
    """The shape rule of one op of a plan, called with the op's inputs as `check(run, *values)`.

    Args:
        record: What the op decided in the run that was recorded.
        most: How many combinations of shapes it remembers in any case.

    Attributes:
        by_shapes: Whether what the rule says follows from shapes alone; otherwise it is asked on every run.
        known_outputs: (slot, position) of outputs whose whole shape follows from those of the inputs. The kernel
            decides the others.
        needed: Whether there is a rule, and an input to ask it about.
        made: (slot, position) of outputs that have a shape.
        seen: The shapes that the rule has accepted.
    """

    def __init__(self, record: OpRecord, most: int = SHAPES) -> None:
        self._operator = record.op
        self._slots = [(slot, len(values)) for slot, values in record.inputs.items()]
        values = [v for vs in record.inputs.values() for v in vs if v is not None]
        # Arrays of tensors grow in place, so that their shapes say nothing of the next run.
        self.by_shapes = not record.inferred.from_values and all(isinstance(v, LoDTensor | SparseValue) for v in values)
        dims = record.inferred.dims if self.by_shapes else {}
        self.known_outputs = frozenset(position for position, d in dims.items() if -1 not in d)
        self.needed = record.op.has_shape_rule and bool(values)
        outputs = [
            (slot, i, v)
            for slot, vs in record.outputs.items()
            for i, (name, v) in enumerate(zip(record.op.outputs[slot], vs, strict=False))
            if name != EMPTY_VAR
        ]
        self.made = [(slot, i) for slot, i, v in outputs if isinstance(v, LoDTensor | SparseValue)]
        self._dtypes = {(slot, i): v.array.dtype for slot, i, v in outputs if isinstance(v, LoDTensor)}
        # Emptied when a kernel breaks a promise.
        self.seen = Cache(most)
        self._ahead = Cache(_AHEAD)  # by shapes, for the op's turn

    def __call__(self, run: RunContext, *values: Any) -> Answer:
        """Ask the rule; raises what it raises. The answer is for `compare`, or for `accept` where no array is made.

        When the answer depends on more than it did when the plan was made, `run.shapes_settled` says so.
        """
        shapes: Any = _shapes_present(values) if self._ahead else None
        # a limit of this run's has to be checked
        known = self._ahead.pop(shapes, None) if self._ahead and run.limits.memory is None else None
        if known is None:
            known, shapes = self._ask(run, values)
        return known, shapes

    def ask_ahead(self, run: RunContext, arrays: Sequence[Any]) -> Promised:
        """Ask the rule about arrays without LoD before the op's turn comes, which then takes this answer."""
        known: Promised | None = self._ahead[_shapes_present(arrays)] if run.limits.memory is None else None
        if known is not None:  # in a stretch its turn did not come
            return known
        dims, shapes = self._ask(run, [None if x is None else LoDTensor(x, check=False) for x in arrays])
        if shapes is not None:
            self._ahead[shapes] = dims
        return dims

    def _ask(self, run: RunContext, values: Sequence[Any]) -> Answer:
        """(what the rule says, the shapes for which it says so every time, or None)."""
        values_by_slot, k = {}, 0
        for slot, count in self._slots:
            values_by_slot[slot] = list(values[k : k + count])
            k += count
        inferred = self._operator.ask_shape_rule(values_by_slot, self._operator.attrs)
        if run.limits.memory is not None:
            listed = partial(lists_elements, self._operator, values_by_slot)
            run.limits.check_outputs(self._operator, inferred.dims, lambda slot, i: self._dtypes.get((slot, i)), listed)
        if not self.by_shapes:
            return inferred.dims, None
        if inferred.from_values or any([-1 in inferred.dims.get(p, _UNKNOWN) for p in self.known_outputs]):
            run.shapes_settled = False
            return inferred.dims, None
        return inferred.dims, _shapes_present(values)

    def accept(self, answer: Answer) -> None:
        """Ask no more about the shapes that an answer is for."""
        shapes = answer[1]
        if shapes is not None:
            self.seen[shapes] = True

    def accept_recorded(self, values: Sequence[Any]) -> None:
        """Ask no more about the shapes of the recorded run, where the rule was asked and the results were compared."""
        if self.by_shapes:
            self.seen[_shapes_present(values)] = True

    def compare(self, answer: Answer, *made: Any) -> None:
        """Accept an answer, or raise KernelResultError when an array of self.made has other dims than were promised.

        The op runs once more on the reference path then, which says so of the kernel. Shapes are accepted only here:
        another thread with the same ones would take what its kernel returns for what was promised.
        """
        promised = answer[0]
        for position, array in zip(self.made, made, strict=True):
            dims = promised.get(position)
            if dims is not None and not is_promised(array.shape, dims):
                self.seen.clear()
                raise KernelResultError(f"op {self._operator.type}: {position[0]} has shape {list(array.shape)}")
        self.accept(answer)


def _shapes_present(values: Sequence[Any]) -> tuple[Any, ...]:
    shapes = tuple([v.shape for v in values if v is not None])
    return shapes[0] if len(shapes) == 1 else shapes


def shapes_text(names: Sequence[str]) -> str:
    """What generated code looks shapes up by, as `ShapeCheck.seen` has them: of one value its shape, without a tuple.

    Args:
        names: What the code calls the values.

    Returns:
        The expression.
    """
    return f"{names[0]}.shape" if len(names) == 1 else f"({', '.join(f'{name}.shape' for name in names)})"


def shapes_of(values: Sequence[Any]) -> tuple[Any, ...]:
    """Shapes of tensors and sparse values, None for other values: what a plan remembers of its inputs."""
    return tuple([v.array.shape if type(v) is LoDTensor else getattr(v, "shape", None) for v in values])
