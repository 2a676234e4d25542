"""A padded encoder runs on rows without padding, between its mask and the last reader of whole rows.

Four questions decide, each over the whole graph: which places a mask keeps (_masks), which variables are [B, S, ...] of
its batch (_sizes), which ops compute each row by itself or are the attention that the mask belongs to (_rules,
_attention, _distances), and how many rows of padding around the others somebody looks at: none where nothing mixes them
into other rows, a few where convolutions do (_spans), or all. _region puts the answers together. What they allow
_writer writes again on rows; what reads whole batches gets them back with zeros for padding.
"""

from __future__ import annotations

from collections.abc import Iterable

from oprack.ir import Graph
from oprack.ir.generic import remove_dead_code

from oprack_sequence.passes._masks import Mask, mask_of, terms
from oprack_sequence.passes._region import Region
from oprack_sequence.passes._sizes import Sizes
from oprack_sequence.passes._writer import write


def unpad(graph: Graph) -> int:
    """padded encoder  ->  pad_by_index(encoder of rows(unpad_by_mask(...)))

    Returns:
        How many attentions run without padding.
    """
    total, done = 0, list[Mask]()
    while graph.block.idx == 0:
        sizes = Sizes(graph)
        mask = next((m for m in _masks(graph, sizes) if not any(m.is_of(other) for other in done)), None)
        if mask is None:
            break
        done.append(mask)
        region = Region(graph, sizes, mask)
        if region.is_worth_it():
            write(region)
            remove_dead_code(graph)
            graph.sort()
            total += region.attentions
    return total


def _masks(graph: Graph, sizes: Sizes) -> Iterable[Mask]:
    """The masks of all that is softmax of scores and something added."""
    for op in graph.ops:
        x = op.input("X")
        added = x.producer if op.type == "softmax" and x is not None else None
        if x is not None and added is not None and added.type == "elementwise_add" and not added.opaque:
            for node in (n for operand in reversed(terms(x)) for n in (operand, *terms(operand))):
                mask = mask_of(graph, sizes, node)
                if mask is not None:
                    yield mask
