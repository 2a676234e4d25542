"""Passes that work on any op: they remove dead code and identities, and give each write its own name."""

from __future__ import annotations

from oprack.ir.graph import Graph
from oprack.ir.nodes import OpNode, VarNode
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
    written = list(op.writes())
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
