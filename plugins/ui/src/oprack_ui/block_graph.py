"""The ops of a block and the variables between them, as nodes and edges."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from oprack.desc import BlockDesc, OpDesc

    from oprack_ui.layout import Edge

SKIPPED = ("feed", "fetch")


@dataclass(frozen=True)
class Node:
    """An op, or a variable that comes from or goes to the outside.

    Attributes:
        name: Type of the op, or name of the variable.
        op: The op; None for a variable.
        number: Of the op in its block; -1 for a variable.
    """

    name: str
    op: OpDesc | None = None
    number: int = -1


def block_graph(block: BlockDesc) -> tuple[list[Node], dict[Edge, str]]:
    """Nodes of a block, and the variable of each edge; sources of an edge come before its target.

    Args:
        block: The block; ops feed and fetch are left out, and parameters, which would crowd the picture.

    Returns:
        The nodes, and the edges by the numbers of their nodes.
    """
    nodes: list[Node] = []
    edges: dict[Edge, str] = {}
    writer: dict[str, int] = {}
    for number, op in enumerate(block.ops):
        if op.type in SKIPPED:
            continue
        for name in dict.fromkeys(op.input_arg_names()):
            if name not in writer and _is_drawn(block, name):
                writer[name] = len(nodes)
                nodes.append(Node(name))
        index = len(nodes)
        nodes.append(Node(op.type, op, number))
        for name in op.input_arg_names():
            if name in writer:
                edges.setdefault((writer[name], index), name)
        writer.update(dict.fromkeys(op.output_arg_names(), index))
    for name in _leaving(block, writer):
        index = writer[name]
        if nodes[index].op is not None:  # what only passes through has its box already
            edges[index, len(nodes)] = name
            nodes.append(Node(name))
    return nodes, edges


def _leaving(block: BlockDesc, written: Iterable[str]) -> list[str]:
    """What is fetched, and of a sub-block what it writes outside."""
    fetched = {name for op in block.ops if op.type == "fetch" for name in op.input_arg_names()}
    outer = block.idx > 0
    return [n for n in written if n in fetched or (outer and n not in block.vars and _is_drawn(block, n))]


def _is_drawn(block: BlockDesc, name: str) -> bool:
    """Whether a variable gets a box where it enters or leaves."""
    var = block.find_var_recursive(name)
    return var is None or not var.persistable
