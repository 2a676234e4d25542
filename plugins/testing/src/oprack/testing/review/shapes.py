"""Shape rules with dims that are not known when a program is built."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence

from oprack.errors import OprackError
from oprack.op.desc_rules import infer_op
from oprack.testing.op_case import OpCase, build
from oprack.testing.review.subject import Finding, Subject
from oprack.types import VarType

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
    for op_type in subject.ops:
        told: set[str] = set()
        for case in subject.cases_of(op_type):
            for which, only, opened in _openings(case):
                text = _contradiction(case, only, opened)
                if text and text not in told:
                    told.add(text)
                    yield Finding("shapes", f"op {op_type}, case {case.id} with {which} at -1: {text}", _FIX)


def _openings(case: OpCase) -> Iterator[tuple[str, str, Callable[[Sequence[int]], list[int]]]]:
    """(in words, the slot that is opened or "" for all, what is opened)"""
    for which, opened in OPENINGS.items():
        yield which, "", opened
    if len(case.inputs) > 1:  # such as data of any batch beside a parameter
        for slot in case.inputs:
            yield f"every dim of {slot} alone", slot, OPENINGS["every dim"]


def _contradiction(case: OpCase, only: str, opened: Callable[[Sequence[int]], list[int]]) -> str:
    """What a rule says that a run contradicts, or how it refuses; "" when it does neither."""
    try:
        built = build(case, case.inputs)
    except OprackError:
        return ""  # the part `kernels` says it
    block = built.program.global_block()
    names = [n for n in built.op.output_arg_names() if block.has_var(n)]
    closed = {n: list(block.vars[n].shape or []) for n in names}
    for name, _ in itertools.chain.from_iterable(pairs for slot, pairs in built.bound.items() if only in ("", slot)):
        var = block.vars[name]
        if var.type in (VarType.LOD_TENSOR, VarType.SELECTED_ROWS):
            var.shape = tuple(opened(var.shape or ()))
    try:
        infer_op(built.op, block, built.info)
    except Exception as e:  # whatever a rule raises
        return f"its shape rule raises {type(e).__name__}: {e}"
    for name in names:
        said = list(block.vars[name].shape or [])
        pairs = zip(said, closed[name], strict=False)
        if len(said) != len(closed[name]) or any(-1 not in pair and pair[0] != pair[1] for pair in pairs):
            return f"its shape rule says {said} for {name}, which is {closed[name]} in a run"
    return ""
