"""Shape rules with dims that are not known when a program is built."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from oprack.desc import BlockDesc
from oprack.errors import OprackError
from oprack.op.desc_rules import infer_op
from oprack.op.info import OpInfo
from oprack.program import Program
from oprack.testing.fuzz.examples.calls import OpCall
from oprack.testing.fuzz.examples.ops import declare
from oprack.testing.review.subject import Finding, Subject
from oprack.types import EMPTY_VAR, VarType

OPENINGS: dict[str, Callable[[Sequence[int]], list[int]]] = {
    "the first dim": lambda dims: [-1, *dims[1:]] if dims else [],
    "every dim but the first": lambda dims: [*dims[:1], *([-1] * len(dims[1:]))],
    "every dim": lambda dims: [-1] * len(dims),
}
_FIX = (
    "a dim of -1 is one that only runs know: compare dims with ctx.same_dims or ctx.require, which take it, and give "
    "-1 for what follows from it"
)


def review(subject: Subject) -> Iterator[Finding]:
    """Run the rules of each case with dims opened; they must not refuse it, nor say dims that a run contradicts."""
    for op_type in subject.each(subject.ops, "shapes"):
        told: set[str] = set()
        for call in subject.calls_of(op_type):
            for which, only, opened in _openings(call):
                text = _contradiction(subject.manager.op_info(op_type), call, only, opened)
                if text and text not in told:
                    told.add(text)
                    yield Finding("shapes", f"op {op_type}, case {call.case} with {which} at -1: {text}", _FIX)


def _openings(call: OpCall) -> Iterator[tuple[str, str, Callable[[Sequence[int]], list[int]]]]:
    """(in words, the slot that is opened or "" for all, what is opened)"""
    for which, opened in OPENINGS.items():
        yield which, "", opened
    if len(call.inputs) > 1:  # such as data of any batch beside a parameter
        for slot in call.inputs:
            yield f"every dim of {slot} alone", slot, OPENINGS["every dim"]


def _contradiction(info: OpInfo, call: OpCall, only: str, opened: Callable[[Sequence[int]], list[int]]) -> str:
    """What a rule says that a run contradicts, or how it refuses; "" when it does neither."""
    block = Program().global_block()
    for name, value in call.values.items():
        declare(block, name, value, persistable=False, declared="static")
    op = block.append_op(call.desc())
    names = [n for n in op.output_arg_names() if n != EMPTY_VAR and n not in call.values]
    for name in names:
        block.create_var(name)
    try:
        infer_op(op, block, info)
    except OprackError:
        return ""  # the part `kernels` says it
    closed = {n: _dims(block, n) for n in names}
    for name in {n for slot, inputs in call.inputs.items() if only in ("", slot) for n in inputs}:
        var = block.vars[name]
        if var.type in (VarType.LOD_TENSOR, VarType.SELECTED_ROWS):
            var.shape = tuple(opened(var.shape or ()))
    try:
        infer_op(op, block, info, guesses=False)
    except Exception as e:  # whatever a rule raises
        return f"its shape rule raises {type(e).__name__}: {e}"
    for name in names:
        said, known = _dims(block, name), closed[name]
        if said is None or known is None:
            continue  # a rule need not even know how many dims there are
        if len(said) != len(known) or any(-1 not in p and p[0] != p[1] for p in zip(said, known, strict=True)):
            return f"its shape rule says {said} for {name}, which is {known} in a run"
    return ""


def _dims(block: BlockDesc, name: str) -> list[int] | None:
    """What a rule says of a variable; None where it says nothing."""
    shape = block.vars[name].shape
    return None if shape is None else list(shape)
