"""Cases of ops as calls of other frameworks: what the checks of oprack-torch and oprack-jax have in common."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from oprack.bridge import BridgedOp, bridged_op, gradient_of, infer_abstract
from oprack.bridge.abstract import Abstract
from oprack.errors import OprackError, UnimplementedError
from oprack.tensor import LoDTensor
from oprack.testing.fuzz.examples.calls import OpCall

NO_CASE = "no case has dense tensors alone"
_WIDE = {"float16": "float64", "bfloat16": "float64", "float32": "float64", "complex64": "complex128"}


class Checked(NamedTuple):
    """What the checks of a framework found of an op.

    Attributes:
        op: The op.
        checks: Which checks could be run, as text.
        problem: Why one of them did not pass; "" when all did; NO_CASE where there is nothing to run.
    """

    op: str
    checks: str
    problem: str


class BridgedCase:
    """A call of a case by how oprack.functional spells it.

    Args:
        call: The call.
        wide: Whether floating numbers are taken in double precision.

    Attributes:
        op: The op.
        name: The case.
        values: Arrays by parameter, lists for duplicable inputs.
        attrs: Attributes by parameter.
        counts: How many tensors each output gets.
    """

    def __init__(self, call: OpCall, wide: bool = True) -> None:
        self.op: BridgedOp = bridged_op(call.type)
        self.name = call.case
        self.values: dict[str, Any] = {}
        for name, slot in self.op.signature.slots.items():
            arrays = [_array(call.values[n].array, wide) for n in call.inputs.get(slot.name, ())]
            if arrays:
                self.values[name] = arrays if slot.duplicable else arrays[0]
        given = ((n, call.attrs.get(a.name)) for n, a in self.op.signature.attrs.items())
        self.attrs = {n: v for n, v in given if v is not None}
        self.counts = [len(call.outputs.get(o.slot.name, ())) for o in self.op.outputs] if self.op.counted else None

    @property
    def flat(self) -> list[np.ndarray]:
        """The arrays one after the other."""
        return [a for v in self.values.values() for a in (v if isinstance(v, list) else [v])]

    def replaced(self, flat: Iterable[Any]) -> dict[str, Any]:
        """Other tensors in the place of the arrays.

        Args:
            flat: As many as there are arrays.

        Returns:
            Them by parameter.
        """
        rest = iter(flat)
        return {n: [next(rest) for _ in v] if isinstance(v, list) else next(rest) for n, v in self.values.items()}

    def reached(self) -> list[int]:
        """Which of the arrays a gradient flows back to, by the op's definition; [] where there is none."""
        arrays = self.flat
        wrt = [i for i, a in enumerate(arrays) if a.dtype.kind in "cf"]
        if not wrt or self.op.info.grad_op_maker is None:
            return []
        expr, order = self.op.expression(self.values, self.attrs, self.counts)
        at = {id(a): i for i, a in enumerate(arrays)}
        places = [at[id(a)] for a in order]
        abstract = [Abstract(a.shape, a.dtype.name) for a in order]
        gradient = gradient_of(
            expr, abstract, infer_abstract(expr, abstract), [k for k, i in enumerate(places) if i in wrt]
        )
        return sorted(places[k] for k in gradient.reached())


def _array(array: Any, wide: bool) -> np.ndarray:
    return np.array(array, dtype=_WIDE.get(array.dtype.name, array.dtype) if wide else array.dtype)


def dense_calls(calls: Iterable[OpCall]) -> list[OpCall]:
    """The calls that other frameworks can compare: of dense tensors without LoD that hold finite numbers.

    Args:
        calls: Calls of an op.

    Returns:
        Those of them, the smallest first; those with floating numbers come before others, and empty ones last.
    """

    def dense(value: Any) -> bool:
        if not isinstance(value, LoDTensor) or value.lod:
            return False
        return value.array.dtype.kind not in "cf" or bool(np.isfinite(value.array).all())

    def key(call: OpCall) -> tuple[bool, bool, int]:
        arrays = [v.array for v in call.values.values()]
        floating = any(a.dtype.kind in "cf" for a in arrays)
        return any(a.size == 0 for a in arrays), not floating, sum(a.size for a in arrays)

    return sorted((c for c in calls if all(map(dense, c.values.values()))), key=key)


def check_calls(op_type: str, calls: Sequence[OpCall], check: Callable[[OpCall], Checked], tries: int = 2) -> Checked:
    """Check some calls of an op, until one does not pass.

    Args:
        op_type: The op.
        calls: Calls of it.
        check: Checks one.
        tries: How many are checked.

    Returns:
        What was found in all.
    """
    passed: list[str] = []
    refused = NO_CASE
    for call in dense_calls(calls):
        if len(passed) == tries:
            break
        try:
            found = check(call)
        except (
            UnimplementedError
        ) as error:  # what can't be traced, such as sizes that a tensor says, may be in one case
            refused = f"{call.case}: {first_line(error)}"
            continue
        except OprackError as error:
            found = Checked(op_type, "", f"{type(error).__name__}: {first_line(error)}")
        if found.problem:
            return found._replace(problem=f"{call.case}: {found.problem}")
        passed.append(found.checks)
    return Checked(op_type, max(passed, key=len, default=""), "" if passed else refused)


def at_kink(function: Callable[..., Sequence[np.ndarray]], inputs: Sequence[np.ndarray], step: float = 1e-6) -> bool:
    """Whether slopes to both sides of the inputs differ, as those of relu at 0 do, so that there is no gradient.

    Args:
        function: A function of arrays that returns arrays.
        inputs: Where it is looked at.
        step: How far to each side.

    Returns:
        Whether they differ, or the function refuses the inputs beside.
    """
    rng = np.random.default_rng(0)
    directions = [rng.standard_normal(x.shape) for x in inputs]
    try:
        left, here, right = (
            function(*[x + sign * step * d for x, d in zip(inputs, directions, strict=True)]) for sign in (-1, 0, 1)
        )
    except OprackError:
        return True
    with np.errstate(all="ignore"):
        for a, b, c in zip(left, here, right, strict=True):
            forward, backward = (c - b) / step, (b - a) / step
            if not (np.abs(forward - backward) <= 1e-2 * (1 + np.abs(forward))).all():
                return True
    return False


def first_line(error: Any) -> str:
    """What an error says first, for a table."""
    return next((line for line in str(error).splitlines() if line.strip()), type(error).__name__)[:200]
