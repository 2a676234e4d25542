"""Constant folding: ops that read nothing but parameters run once, here."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from oprack.desc import BlockDesc, OpDesc, ProgramDesc
from oprack.interruption import let_interruptions_pass
from oprack.ir.graph import Graph
from oprack.ir.nodes import OpNode
from oprack.op.desc_rules import infer_op
from oprack.runtime import NaiveExecutor
from oprack.runtime.run_context import RandomState
from oprack.tensor import LoDTensor, Scope
from oprack.tensor.arrays import numpy_dtype
from oprack.types import VarType

_MOST_BYTES = 16 << 20


class _Watched(RandomState):
    """Says whether an op draws: then its result is no constant."""

    drawn = False

    def generator(self, op_key: str, seed: int = 0) -> np.random.Generator:
        self.drawn = True
        return super().generator(op_key, seed)


def fold_constants(graph: Graph, ops: Iterable[OpNode] | None = None) -> int:
    """Run ops whose inputs are all parameters, and make their outputs parameters: all of them, or these in their order.

    Left alone are ops that draw random numbers, run themselves or fail here, and outputs whose size can't be told
    beforehand or is larger than what they are made from and 16 MiB.
    """
    if graph.scope is None:
        return 0
    libraries = [name for _, name, _ in graph.manager.targets("library")]  # which round in ways of their own
    executor = NaiveExecutor(graph.place, manager=graph.manager, prepared=False, excluded_libraries=libraries)
    count = 0
    for op in graph.ops if ops is None else ops:
        count += _fold(graph, op, executor)
    return count


def _fold(graph: Graph, op: OpNode, executor: NaiveExecutor) -> bool:
    """Put parameters in place of an op's outputs; False when the op has to stay."""
    wanted = [n for n in op.writes() if n.consumers]
    if not wanted or not _may_go(graph, op):
        return False
    values = {n.name: graph.constant(n) for n in op.reads()}
    known = {name: value for name, value in values.items() if value is not None}
    if len(known) < len(values):
        return False
    results = _run(graph, op, known, executor)
    if results is None or any(n.name not in results for n in wanted):
        return False
    for node in wanted:
        new = graph.new_parameter(results[node.name], node.name)
        for reader in node.consumers:
            graph.replace_input(reader, node, new)
    graph.remove_op(op)
    return True


def _may_go(graph: Graph, op: OpNode) -> bool:
    """Whether nothing but the op's readers notices when it does not run."""
    if op.opaque or op.runs_itself or op.hidden_reads or op.hidden_writes:
        return False
    return not any(graph.is_kept(n) or graph.is_overwritten(n) for n in op.writes())


def _run(
    graph: Graph, op: OpNode, values: dict[str, LoDTensor], executor: NaiveExecutor
) -> dict[str, LoDTensor] | None:
    """Outputs of the op, run alone in a program of its own; None when it can't be folded."""
    program, desc = _alone(op, values)
    # What is folded may not grow: a fill of a large shape would move it from the program into the parameter file.
    limit = max(_MOST_BYTES, sum(math.prod(v.shape) * v.array.itemsize for v in values.values()))
    try:
        infer_op(desc, program.blocks[0], graph.manager.op_info(op.type))
        if not _is_small(op, program.blocks[0], limit):
            return None
        scope, random = Scope(), _Watched()
        # The executor is shared by all ops of the pass, and each op is watched by itself.
        executor.random = random
        for name, value in values.items():
            scope.var(name).set(value)
        executor.run_prepared(executor.prepare(program), scope)
    except Exception:
        let_interruptions_pass()
        return None  # running the whole program says what is wrong
    if random.drawn:
        return None
    found = {n.name: scope.get_var(n.name).value for n in op.writes() if n.name in scope}
    return {name: value for name, value in found.items() if isinstance(value, LoDTensor)}


def _alone(op: OpNode, values: dict[str, LoDTensor]) -> tuple[ProgramDesc, OpDesc]:
    """A program of a copy of the op, and the copy."""
    program = ProgramDesc()
    block = program.blocks[0]
    desc: OpDesc = op.desc.clone()
    desc.inputs = {slot: [n.name for n in nodes] for slot, nodes in op.inputs.items()}
    desc.outputs = {slot: [n.name for n in nodes] for slot, nodes in op.outputs.items()}
    block.ops.append(desc)
    for name, value in values.items():
        block.create_var(name, dtype=value.dtype, shape=value.shape, lod_level=len(value.lod))
    for node in op.writes():
        block.create_var(node.name, dtype=node.dtype)
    return program, desc


def _is_small(op: OpNode, block: BlockDesc, limit: int) -> bool:
    """Whether each output is a dense tensor whose size is known before the op runs, and takes at most `limit` bytes."""
    for node in op.writes():
        var = block.vars[node.name]
        known = var.shape is not None and min(var.shape, default=1) >= 0
        if node.consumers and (var.type != VarType.LOD_TENSOR or not known):
            return False
        size = math.prod(max(d, 0) for d in var.shape or ())
        if var.dtype is not None and size * numpy_dtype(var.dtype).itemsize > limit:
            return False
    return True
