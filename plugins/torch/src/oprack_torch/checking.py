"""torch's own checks of ops, on the cases that packs have: what `oprack check` and the tests ask."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from oprack.bridge import bridged_op, gradient_of, infer_abstract
from oprack.errors import OprackError
from oprack.testing.fuzz.examples.calls import OpCall, dense_calls
from oprack_torch.arrays import abstract_of, torch_of
from oprack_torch.library import TorchOp, torch_op

_WIDE = {torch.float16: torch.float64, torch.bfloat16: torch.float64, torch.float32: torch.float64,
         torch.complex64: torch.complex128}  # fmt: skip


NO_CASE = "no case has dense tensors alone"


class Checked(NamedTuple):
    """What a check of an op found.

    Attributes:
        op: The op.
        call: What was passed on: "opcheck", or "opcheck and gradcheck"; "" where no case could be used.
        problem: Why it did not pass; "" when it did.
    """

    op: str
    call: str
    problem: str


def check_op(op_type: str, calls: Sequence[OpCall], tries: int = 2) -> Checked:
    """Run torch.library.opcheck and torch.autograd.gradcheck, at float64, for an op.

    Args:
        op_type: The op.
        calls: Calls of it.
        tries: How many calls are tried, of those that run.

    Returns:
        What was found.
    """
    passed: list[str] = []
    for call in dense_calls(calls):
        if len(passed) == tries:
            break
        try:
            found = _check_call(torch_op(op_type), call)
        except OprackError as error:
            found = Checked(op_type, "", f"{type(error).__name__}: {error}".partition("\n")[0])
        if found.problem:
            return found._replace(problem=f"{call.case}: {found.problem}")
        passed.append(found.call)
    return Checked(op_type, max(passed, key=len, default=""), "" if passed else NO_CASE)


def _check_call(op: TorchOp, call: OpCall) -> Checked:
    values, attrs = _arguments(op, call)
    flat = [t for v in values.values() for t in (v if isinstance(v, list) else [v])]
    wide = [t.to(_WIDE.get(t.dtype, t.dtype)) for t in flat]
    moved = _replaced(values, wide)
    try:
        op.overload(**moved, **attrs)
    except OprackError:  # no kernel for double precision, as int8 and bfloat16 have it
        wide, moved = flat, values
    reached = _reached(op, moved, attrs)
    for i in reached:
        wide[i].requires_grad_(True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        results = torch.library.opcheck(op.overload, (), {**moved, **attrs}, raise_exception=False)
        failed = {k: v for k, v in results.items() if v != "SUCCESS"}
        if failed:
            name, why = next(iter(failed.items()))
            return Checked(op.type, "opcheck", f"{name}: {_first_line(why)}")
        if not reached or any(wide[i].dtype not in (torch.float64, torch.complex128) for i in reached):
            return Checked(op.type, "opcheck", "")
        compared, problem = _gradcheck(op, moved, attrs, wide, reached)
        return Checked(op.type, "opcheck and gradcheck" if compared else "opcheck", problem)


def _gradcheck(op: TorchOp, values: Any, attrs: Any, flat: list[torch.Tensor], reached: Sequence[int]) -> tuple[bool, str]:
    """Whether the gradient could be compared, and what differs."""

    def function(*moved: torch.Tensor) -> Any:
        torch.manual_seed(0)
        given = list(flat)
        for i, t in zip(reached, moved, strict=True):
            given[i] = t
        result = op.overload(**_replaced(values, given), **attrs)
        parts = [result] if isinstance(result, torch.Tensor) else list(result)
        tensors = [t for part in parts for t in (part if isinstance(part, list | tuple) else [part])]
        return tuple(t for t in tensors if t.requires_grad)

    inputs = tuple(flat[i] for i in reached)
    if not any(t.numel() for t in inputs) or not function(*inputs) or at_kink(function, inputs):
        return False, ""
    try:
        torch.autograd.gradcheck(function, inputs, fast_mode=True, atol=1e-4, rtol=1e-3)
    except Exception as error:
        return True, f"gradcheck: {_first_line(error)}"
    return True, ""


def at_kink(function: Any, inputs: Sequence[torch.Tensor], step: float = 1e-6) -> bool:
    """Whether slopes to both sides of the inputs differ, as those of relu at 0 do, so that there is no gradient."""
    torch.manual_seed(0)
    directions = [torch.randn_like(t) for t in inputs]

    def moved(sign: int) -> list[torch.Tensor]:
        given = [(t + sign * step * d).detach().requires_grad_() for t, d in zip(inputs, directions, strict=True)]
        return [y.detach() for y in function(*given)]

    try:
        left, here, right = moved(-1), moved(0), moved(1)
    except OprackError:
        return True
    for a, b, c in zip(left, here, right, strict=True):
        forward, backward = (c - b) / step, (b - a) / step
        if ((forward - backward).abs() > 1e-2 * (1 + forward.abs())).any():
            return True
    return False


def _reached(op: TorchOp, values: Any, attrs: Any) -> list[int]:
    """Which of the tensors a gradient flows back to."""
    expr, flat = op.expression((), {**values, **attrs})
    abstract = [abstract_of(t) for t in flat]
    wrt = [i for i, t in enumerate(flat) if t.is_floating_point() or t.is_complex()]
    if not wrt or op.op.info.grad_op_maker is None:
        return []
    at = {id(t): i for i, t in enumerate(t for v in values.values() for t in (v if isinstance(v, list) else [v]))}
    gradient = gradient_of(expr, abstract, infer_abstract(expr, abstract), wrt)
    return [at[id(flat[i])] for i in gradient.reached()]


def _arguments(op: TorchOp, call: OpCall) -> tuple[dict[str, Any], dict[str, Any]]:
    """Tensors and attributes of a call by how the op of torch spells them."""
    bridged = bridged_op(op.type)
    values = {}
    for name, slot in bridged.signature.slots.items():
        tensors = [torch_of(np.array(call.values[n].array)) for n in call.inputs.get(slot.name, ())]
        if tensors:
            values[name] = tensors if slot.duplicable else tensors[0]
    attrs = {n: call.attrs[a.name] for n, a in bridged.signature.attrs.items() if call.attrs.get(a.name) is not None}
    if bridged.counted:
        attrs["num_outputs"] = [len(call.outputs.get(o.slot.name, ())) for o in bridged.outputs]
    return values, attrs


def _replaced(values: dict[str, Any], flat: Sequence[torch.Tensor]) -> dict[str, Any]:
    rest = iter(flat)
    return {n: [next(rest) for _ in v] if isinstance(v, list) else next(rest) for n, v in values.items()}


def _first_line(error: Any) -> str:
    return next((line for line in str(error).splitlines() if line.strip()), type(error).__name__)[:200]
