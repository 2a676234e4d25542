"""Passes that work on any op: dead code, identities, a name of its own for each write, constants that are folded."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np
from oprack.desc import BlockDesc, OpDesc, ProgramDesc
from oprack.ir.graph import Graph
from oprack.ir.nodes import OpNode, VarNode
from oprack.op.desc_rules import infer_op
from oprack.python.interruption import let_interruptions_pass
from oprack.runtime import NaiveExecutor
from oprack.runtime.run_context import RandomState
from oprack.tensor import LoDTensor, Scope
from oprack.tensor.arrays import numpy_dtype
from oprack.types import EMPTY_VAR, VarType


def remove_dead_code(graph: Graph) -> int:
    """Remove ops whose outputs are never read. Ops that run themselves remain, as they may have side effects."""
    count = 0
    # From the end, so that ops which only dead ops read are dead by the time they are visited.
    for op in reversed(graph.ops):
        if _is_dead(graph, op):
            graph.remove_op(op)
            count += 1
    return count


def _is_dead(graph: Graph, op: OpNode) -> bool:
    if op.runs_itself or op.desc.is_target or op.hidden_writes or op.malformed:
        return False
    written = op.writes()
    return bool(written) and not any(n.consumers or graph.is_kept(n) for n in written)


def name_every_write(graph: Graph) -> int:
    """Give each write to a variable that is written more than once its own name, with the shape of that write.

    Programs of Paddle 1.x reshape in place. Other passes can't move the readers of a name that is overwritten later,
    and a program declares only one shape for all values of a name. This applies to block 0 alone: the next round of a
    loop may read the names of other blocks.
    """
    count = 0
    for op in graph.ops if graph.block.idx == 0 else ():
        if op.opaque or op.runs_itself or op.hidden_reads or op.hidden_writes:
            continue
        for node in [n for n in op.writes() if _may_have_own_name(graph, n) and not _may_stay(graph, op, n)]:
            graph.own_name(node)
            count += 1
    return count


def _may_have_own_name(graph: Graph, node: VarNode) -> bool:
    if node.desc is None or node.desc.type != VarType.LOD_TENSOR or node.persistable or graph.is_kept(node):
        return False
    hidden = node.pinned or any(node in reader.hidden_reads for reader in node.consumers)
    return not hidden and len(graph.versions(node.name)) > 1


def _may_stay(graph: Graph, op: OpNode, node: VarNode) -> bool:
    """Whether the variable may be as it was after the op, which reads it and may leave that output out."""
    if all(read.name != node.name for read in op.reads()):
        return False
    slots = graph.manager.op_info(op.type).proto.outputs
    return any(node in nodes and slot in slots and slots[slot].dispensable for slot, nodes in op.outputs.items())


def remove_identities(graph: Graph) -> int:
    """Remove ops that return their first input as their first output, as the `identity` rule of their packs says."""
    count = 0
    for op in graph.ops:
        pair = _identity(graph, op)
        if pair is not None and graph.replace_var(*pair):
            graph.remove_op(op)
            count += 1
    return count


def _identity(graph: Graph, op: OpNode) -> tuple[VarNode, VarNode] | None:
    """(output, input) of an op that is an identity; None for any other."""
    info = graph.manager.op_info(op.type)
    if info.identity is None or op.opaque or op.hidden_writes or op.runs_itself:
        return None
    old, new = op.output(next(iter(info.proto.outputs))), op.input(next(iter(info.proto.inputs)))
    if old is None or new is None or not (_is_dense(old) and _is_dense(new)):
        return None
    if any(n is not old and (n.consumers or graph.is_kept(n)) for n in op.writes()):
        return None
    return (old, new) if graph.is_identity(op) else None


def _is_dense(node: VarNode) -> bool:
    return node.name != EMPTY_VAR and node.desc is not None and node.desc.type == VarType.LOD_TENSOR


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
