"""The verifier: whether a graph still can run, and which op can't."""

from __future__ import annotations

from collections.abc import Collection

from oprack.desc import BlockDesc
from oprack.errors import GraphError, OprackError
from oprack.ir.graph import Graph
from oprack.ir.nodes import OpNode, VarNode
from oprack.op.desc_rules import infer_op
from oprack.python.interruption import let_interruptions_pass
from oprack.python.records import dataclass
from oprack.types import EMPTY_VAR, VarType


@dataclass(frozen=True)
class Facts:
    """What a pass may not change.

    Attributes:
        inputs: Names whose values come from outside.
        kept: Inferred dtype and rank of each variable that is read after a run.
    """

    inputs: frozenset[str]
    kept: dict[str, tuple[str | None, int]]


def verify(graph: Graph, before: Facts | None = None) -> Facts:
    """Check edges, names, signatures, attributes and shapes of a graph.

    Args:
        graph: The graph.
        before: What an earlier call returned, to be compared.

    Returns:
        What is known of its variables, for a later call.

    Raises:
        GraphError: The message names the op.
    """
    _check_edges(graph)
    if before is not None:
        _check_inputs(graph, before.inputs)
    _check_names(graph)
    for op in graph.ops:
        _check_signature(graph, op)
    kept = _inferred(graph)
    for name, was in before.kept.items() if before is not None else ():
        if kept.get(name) != was:
            now = kept.get(name, ("nothing", 0))
            raise GraphError(f"variable {name!r} was {was[0]} of rank {was[1]} and would be {now[0]} of rank {now[1]}")
    return Facts(frozenset(n.name for n in graph.vars() if graph.is_external(n)), kept)


def _check_edges(graph: Graph) -> None:
    known, ops = set(graph.vars()), set(graph.ops)
    for op in graph.ops:
        for node in op.reads():
            if node not in known:
                raise GraphError(f"{op!r} reads {node!r}, which is no longer in the graph")
            if op not in node.consumers:
                raise GraphError(f"{op!r} reads {node!r}, which does not count it among its consumers")
            if node.producer is not None and node.producer not in ops:
                raise GraphError(f"{op!r} reads {node!r}, whose producer {node.producer!r} was removed")
        for node in op.writes():
            if node.producer is not op:
                raise GraphError(f"{op!r} writes {node!r}, whose producer is {node.producer!r}")
    for node in known:
        stray = [op for op in (node.producer, *node.consumers) if op is not None and op not in ops]
        if stray:
            raise GraphError(f"{node!r} hangs on {stray[0]!r}, which was removed")


def _check_inputs(graph: Graph, inputs: Collection[str]) -> None:
    for node in graph.vars():
        known = node.persistable and (graph.scope is None or node.name in graph.scope)
        if graph.is_external(node) and node.name not in inputs and not known:
            raise GraphError(f"{node.consumers[0]!r} reads {node.name!r}, which no op writes before it")


def _check_names(graph: Graph) -> None:
    """In the order in which the ops will run, each name has to stand for the version that is meant."""
    graph.sort()
    current: dict[str, VarNode] = {n.name: n for n in reversed(graph.vars()) if graph.is_external(n)}
    for op in graph.ops:
        for node in op.reads():
            if current.get(node.name) is not node:
                raise GraphError(f"{op!r} reads {node!r}, but {node.name!r} holds {current.get(node.name)!r} then")
        current.update((node.name, node) for node in op.writes())
    for name in graph.keep:
        versions = graph.versions(name)
        if versions and current.get(name) is not versions[-1]:
            raise GraphError(f"variable {name!r} is read after the run, but its last version is not what it holds")


def _check_signature(graph: Graph, op: OpNode) -> None:
    inputs = {slot: [n.name for n in nodes] for slot, nodes in op.inputs.items()}
    outputs = {slot: [n.name for n in nodes] for slot, nodes in op.outputs.items()}
    try:
        why = graph.misfit(op.desc, inputs, outputs)
    except OprackError as error:
        raise GraphError(f"{op!r}: {error}") from error
    if why:
        raise GraphError(f"{op!r} {why}")


def _inferred(graph: Graph) -> dict[str, tuple[str | None, int]]:
    """dtype and rank of the variables that are read after a run, with all shapes inferred anew on a copy."""
    program = graph.program.clone()
    block = program.block(graph.block.idx)
    for op in graph.ops:
        _infer_on_copy(graph, op, block)
    found = {name: block.find_var_recursive(name) for name in graph.keep}
    return {
        name: (var.dtype_name(), len(var.shape or ()))
        for name, var in found.items()
        if var is not None and var.type == VarType.LOD_TENSOR
    }


def _infer_on_copy(graph: Graph, op: OpNode, block: BlockDesc) -> None:
    """Run an op's rules on the variables of a copy of the graph's block; GraphError when that can't be done."""
    desc = op.desc.clone()
    desc.inputs = {slot: [n.name for n in nodes] for slot, nodes in op.inputs.items()}
    desc.outputs = {slot: [n.name for n in nodes] for slot, nodes in op.outputs.items()}
    for name in (*desc.input_arg_names(), *desc.output_arg_names()):
        if name != EMPTY_VAR and block.find_var_recursive(name) is None:
            raise GraphError(f"{op!r} names {name!r}, which no block declares")
    if op.runs_itself:
        return
    try:
        infer_op(desc, block, graph.manager.op_info(op.type))
    except Exception as error:  # a rule may meet dims that it does not expect
        let_interruptions_pass()
        what = str(error) if isinstance(error, OprackError) else f"{type(error).__name__}: {error}"
        raise GraphError(f"{op!r}: shapes can't be inferred: {what}") from error
