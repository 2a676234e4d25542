"""torch's own checks of ops, on the cases that packs have: what `oprack check` and the tests ask."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import numpy as np
import torch
from oprack.errors import KernelNotFoundError, KernelResultError, OprackError
from oprack.testing.bridges import BridgedCase, Checked, at_kink, check_calls, first_line
from oprack.testing.fuzz.examples.calls import OpCall

from oprack_torch.arrays import array_of, torch_of
from oprack_torch.library import torch_op

OPCHECK, BOTH = "opcheck", "opcheck and gradcheck"


def check_op(op_type: str, calls: Sequence[OpCall], tries: int = 2) -> Checked:
    """Run torch.library.opcheck and torch.autograd.gradcheck, at float64, for an op.

    Args:
        op_type: The op.
        calls: Calls of it.
        tries: How many calls are checked.

    Returns:
        What was found.
    """
    return check_calls(op_type, calls, _check, tries)


class _TorchCase:
    """A case with tensors of torch, of which those require gradients to which some flow back."""

    def __init__(self, case: BridgedCase) -> None:
        self.case, self.overload = case, torch_op(case.op.type).overload
        self.tensors = [torch_of(a) for a in case.flat]
        self.attrs = case.attrs | ({} if case.counts is None else {"num_outputs": case.counts})
        self.reached = case.reached()

    def __call__(self, *moved: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """The results that have gradients, as a function of the tensors that have."""
        torch.manual_seed(0)
        given = list(self.tensors)
        for i, t in zip(self.reached, moved, strict=True):
            given[i] = t
        result = self.overload(**self.case.replaced(given), **self.attrs)
        parts = [result] if isinstance(result, torch.Tensor) else list(result or ())
        flat = [t for part in parts for t in (part if isinstance(part, list | tuple) else [part])]
        return tuple(t for t in flat if t.requires_grad or not self.reached)

    @property
    def inputs(self) -> tuple[torch.Tensor, ...]:
        """The tensors that have gradients."""
        return tuple(self.tensors[i] for i in self.reached)

    def as_arrays(self, *arrays: np.ndarray) -> list[np.ndarray]:
        """The same function of arrays."""
        return [array_of(y) for y in self(*[torch_of(a).requires_grad_() for a in arrays])]

    def settle(self) -> None:
        """Take gradients where the op gives finite ones: a case may be one of those in which it refuses them."""
        if not self.reached:
            return
        for t in self.inputs:
            t.requires_grad_()
        try:
            results = [y.real if y.is_complex() else y for y in self(*self.inputs)]
            found = torch.autograd.grad([y.sum() for y in results], self.inputs, allow_unused=True) if results else ()
        except OprackError:
            found = (None,)
        if not found or any(g is None or not g.isfinite().all() for g in found):
            for t in self.inputs:
                t.requires_grad_(False)
            self.reached = []


def _check(call: OpCall) -> Checked:
    case = _TorchCase(BridgedCase(call))
    try:
        case(*case.inputs)
    except (KernelNotFoundError, KernelResultError):  # none for double precision, as int8 and bfloat16 have it
        case = _TorchCase(BridgedCase(call, wide=False))
    case.settle()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = torch.library.opcheck(
            case.overload, (), case.case.replaced(case.tensors) | case.attrs, raise_exception=False
        )
    failed = [f"{name}: {first_line(why)}" for name, why in found.items() if why != "SUCCESS"]
    if failed:
        return Checked(call.type, OPCHECK, failed[0])
    double = all(t.dtype in (torch.float64, torch.complex128) for t in case.inputs)
    arrays = [array_of(t) for t in case.inputs]
    if not case.reached or not double or not sum(a.size for a in arrays) or at_kink(case.as_arrays, arrays):
        return Checked(call.type, OPCHECK, "")
    try:
        torch.autograd.gradcheck(case, case.inputs, fast_mode=True, atol=1e-4, rtol=1e-3)
    except Exception as error:
        return Checked(call.type, BOTH, f"gradcheck: {first_line(error)}")
    return Checked(call.type, BOTH, "")


__all__ = ["BOTH", "OPCHECK", "check_op"]
