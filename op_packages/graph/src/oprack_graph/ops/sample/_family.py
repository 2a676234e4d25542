"""The shape rule of samples of neighbours."""

from __future__ import annotations

from oprack.op import InferShapeContext


def infer_sample(
    ctx: InferShapeContext, graph: tuple[str, str], nodes: str, eids: str, outputs: tuple[str, str, str]
) -> None:
    """Set the outputs of an op that samples neighbours.

    Args:
        ctx: The context of the rule.
        graph: Slots of the neighbours of all nodes, and of where each node's begin.
        nodes: The slot of the nodes whose neighbours are sampled.
        eids: The slot of the numbers of the edges.
        outputs: Slots of the sample, of the number for each node, and of the edges.
    """
    for slot in graph:
        dims = ctx.require_rank(slot, 1, 2)
        ctx.require(len(dims) == 1 or dims[1] in (1, -1), f"{slot} has shape {list(dims)}; expected [n] or [n, 1]")
    given = ctx.has_input(eids)
    ctx.require(
        given or not ctx.attr("return_eids"), f"return_eids is set and {eids} is absent; give the edges' numbers"
    )
    if given:
        ctx.same_size(graph[0], eids)
    ctx.set_dim(outputs[0], (-1,))
    ctx.set_dim(outputs[1], (ctx.require_rank(nodes, 1)[0],))
    ctx.set_dim(outputs[2], (-1,))
