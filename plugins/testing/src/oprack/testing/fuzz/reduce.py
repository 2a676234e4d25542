"""Makes an example smaller by its program: what shrinking the choices that made it can't cut out of its middle."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from oprack.desc import OpDesc
from oprack.program import Program
from oprack.tensor import LoDTensor
from oprack.testing.fuzz.examples.example import Example
from oprack.testing.fuzz.runs.outcome import Outcome
from oprack.types import EMPTY_VAR, VarType

_V = TypeVar("_V")

Fails = Callable[[Example], bool]


def reduced(
    example: Example, variable: str, fails: Fails, reference: Callable[[Example], list[Outcome]], seconds: float
) -> Example:
    """The smallest example that still fails, as far as the time goes.

    variable: the one that differs, "" when it is none. fails: runs an example. reference: of the reference path.
    """
    until = time.monotonic() + seconds
    found = example

    def better(candidates: Iterator[Example]) -> bool:
        nonlocal found
        for candidate in candidates:
            if time.monotonic() > until:
                return False
            if candidate.program.global_block().ops and fails(candidate):
                found = candidate
                return True
        return False

    better(_fewer_fetches(found, variable))
    better(_fewer_runs(found))
    while better(_shorter_ends(found)) or better(_fewer_starts(found, reference)) or better(_skipped(found)):
        pass
    better(_fewer_runs(found))
    return found


def _fewer_fetches(example: Example, variable: str) -> Iterator[Example]:
    names = [variable] if variable in example.fetch else []
    for name in dict.fromkeys([*names, *example.fetch]):
        if len(example.fetch) > 1:
            yield sliced(example, [name])


def _fewer_runs(example: Example) -> Iterator[Example]:
    count = len(example.runs)
    for run in range(count):
        if count > 1:
            yield replace(example, runs=[example.runs[run]])
    for run in range(count):
        if count > 2:
            yield replace(example, runs=[r for i, r in enumerate(example.runs) if i != run])


def _shorter_ends(example: Example) -> Iterator[Example]:
    """Fetch what an earlier op gives."""
    block = example.program.global_block()
    for op in block.ops[:-1]:
        names = [n for n in op.output_arg_names() if n != EMPTY_VAR and block.has_var(n)]
        kept = [n for n in names if block.var(n).type is VarType.LOD_TENSOR and not block.var(n).persistable]
        if kept and not example.wrt:
            yield sliced(example, kept[:1])


def _fewer_starts(example: Example, reference: Callable[[Example], list[Outcome]]) -> Iterator[Example]:
    """Feed a variable what the reference computes for it, the last ones first."""
    names = _could_be_fed(example)
    if not names or example.wrt:
        return
    outcomes = reference(replace(example, fetch=[*example.fetch, *names]))
    for name in reversed(names):
        values = [o.values.get(name) for o in outcomes]
        if all(isinstance(v, LoDTensor) for v in values):
            yield _fed(example, name, values)


def _could_be_fed(example: Example) -> list[str]:
    """Dense variables that one op of block 0 alone writes, and nobody fetches."""
    block = example.program.global_block()
    writes = Counter(n for op in block.ops for n in op.output_arg_names())
    inside = {n for b in example.program.blocks[1:] for op in b.ops for n in op.output_arg_names()}
    taken = {*example.params, *example.runs[0], *example.fetch, *inside}
    once = [n for n, count in writes.items() if count == 1 and n not in taken and block.has_var(n)]
    return [n for n in once if block.var(n).type is VarType.LOD_TENSOR]


def _fed(example: Example, name: str, values: Sequence[Any]) -> Example:
    program = Program(example.program.desc.clone())
    block = program.global_block()
    block.ops = [op for op in block.ops if name not in op.output_arg_names()]
    first = values[0]
    block.create_var(name, dtype=first.dtype, lod_level=len(first.lod))
    runs = [run | {name: value} for run, value in zip(example.runs, values, strict=True)]
    return sliced(replace(example, program=program, runs=runs), example.fetch)


def _skipped(example: Example) -> Iterator[Example]:
    """Without an op in the middle: what reads its output reads its first input."""
    for index in range(len(example.program.global_block().ops)):
        program = Program(example.program.desc.clone())
        block = program.global_block()
        op = block.ops[index]
        inputs = [n for n in op.input_arg_names() if n not in example.params and n != EMPTY_VAR]
        outputs = [n for n in op.output_arg_names() if n != EMPTY_VAR]
        if not inputs or not outputs or example.wrt or example.has_blocks or set(outputs) & set(example.fetch):
            continue
        block.ops.remove(op)
        for later in block.ops[index:]:
            for old in outputs:
                later.rename_input(old, inputs[0])
        yield sliced(replace(example, program=program), example.fetch)


def _names(op: OpDesc, program: Program) -> tuple[set[str], set[str]]:
    """(read, written) by an op and by the blocks that it runs."""
    reads, writes = set(op.input_arg_names()), set(op.output_arg_names())
    for index in op.sub_blocks():
        for inner in program.blocks[index].ops:
            more = _names(inner, program)
            reads |= more[0]
            writes |= more[1]
    return reads, writes


def sliced(example: Example, fetch: Sequence[str]) -> Example:
    """The example with the ops that these outputs need, and with what those read."""
    program = Program(example.program.desc.clone())
    block = program.global_block()
    # eager backward starts from all targets, whose gradients may meet in one that is fetched
    needed = {*fetch, *(example.targets if example.wrt else ())}
    kept = _needed_ops(program, needed)
    block.ops = [op for _, op in kept]
    used = {n for op in block.ops for names in _names(op, program) for n in names} | set(fetch)
    for name in [n for n in block.vars if n not in used]:
        block.remove_var(name)

    def in_use(by_name: Mapping[str, _V]) -> dict[str, _V]:
        return {n: v for n, v in by_name.items() if n in used}

    return replace(
        example,
        program=program,
        params=in_use(example.params),
        runs=list(map(in_use, example.runs)),
        fetch=list(fetch),
        layouts=in_use(example.layouts),
        wrt={x: g for x, g in example.wrt.items() if g in fetch},
        targets={y: g for y, g in example.targets.items() if g in used},
        forward_ops=sum(index < example.forward_ops for index, _ in kept),
    )


def _needed_ops(program: Program, needed: set[str]) -> list[tuple[int, OpDesc]]:
    """(number, op) of the ops of block 0 that these variables need, in order; what those read joins `needed`."""
    kept = []
    for index, op in reversed(list(enumerate(program.global_block().ops))):
        reads, writes = _names(op, program)
        if needed & writes:
            needed |= reads
            kept.append((index, op))
    return kept[::-1]
