"""Messages along the edges of graphs: paddle.geometric."""

from __future__ import annotations

from typing import Any

import numpy as np
import oprack
from oprack import functional as F

Tensor = Any


def _one(found: Any) -> Tensor:
    return found[0] if isinstance(found, tuple) else found


def _size(out_size: Any) -> list[int]:
    if out_size is None:
        return [0]
    return [int(out_size.item() if hasattr(out_size, "item") else out_size)]


def send_u_recv(
    x: Tensor, src_index: Tensor, dst_index: Tensor, reduce_op: str = "sum", out_size: Any = None, name: Any = None
) -> Tensor:
    """What the nodes at the start of edges send, reduced where the edges end."""
    return _one(F.graph_send_recv(x, src_index, dst_index, reduce_op=reduce_op.upper(), out_size=_size(out_size)))


def send_ue_recv(
    x: Tensor, y: Tensor, src_index: Tensor, dst_index: Tensor, message_op: str = "add", reduce_op: str = "sum",
    out_size: Any = None, name: Any = None,
) -> Tensor:  # fmt: skip
    """What nodes send, combined with what their edges have, reduced where the edges end."""
    y, message_op = _inverse(y, message_op)
    found = F.graph_send_ue_recv(
        x, y, src_index, dst_index, message_op=message_op, reduce_op=reduce_op.upper(), out_size=_size(out_size)
    )
    return _one(found)


def send_uv(
    x: Tensor, y: Tensor, src_index: Tensor, dst_index: Tensor, message_op: str = "add", name: Any = None
) -> Tensor:
    """For each edge, what both of its nodes have, combined."""
    y, message_op = _inverse(y, message_op)
    return F.graph_send_uv(x, y, src_index, dst_index, message_op=message_op)


def _inverse(y: Tensor, message_op: str) -> tuple[Tensor, str]:
    """Subtraction and division as what the ops have."""
    if message_op == "sub":
        return -y, "ADD"
    return (1.0 / y, "MUL") if message_op == "div" else (y, message_op.upper())


def _pooled(data: Tensor, segment_ids: Tensor, kind: str) -> Tensor:
    return _one(F.segment_pool(data, segment_ids, pooltype=kind))


def segment_sum(data: Tensor, segment_ids: Tensor, name: Any = None) -> Tensor:
    """The sums of rows of one segment."""
    return _pooled(data, segment_ids, "SUM")


def segment_mean(data: Tensor, segment_ids: Tensor, name: Any = None) -> Tensor:
    """The means of rows of one segment."""
    return _pooled(data, segment_ids, "MEAN")


def segment_min(data: Tensor, segment_ids: Tensor, name: Any = None) -> Tensor:
    """The smallest elements of one segment."""
    return _pooled(data, segment_ids, "MIN")


def segment_max(data: Tensor, segment_ids: Tensor, name: Any = None) -> Tensor:
    """The largest elements of one segment."""
    return _pooled(data, segment_ids, "MAX")


def reindex_graph(
    x: Tensor, neighbors: Tensor, count: Tensor, value_buffer: Any = None, index_buffer: Any = None, name: Any = None
) -> tuple[Tensor, Tensor, Tensor]:
    """Nodes numbered from 0 on: the starts and ends of edges, and the nodes in order."""
    return F.graph_reindex(x, neighbors, count)


def reindex_heter_graph(
    x: Tensor, neighbors: Any, count: Any, value_buffer: Any = None, index_buffer: Any = None, name: Any = None
) -> tuple[Tensor, Tensor, Tensor]:
    """The same for graphs with edges of several kinds."""
    _, _, nodes = F.graph_reindex(x, oprack.concat(list(neighbors)), _total(count))
    place = {n: i for i, n in enumerate(np.asarray(nodes).tolist())}
    sources = [place[n] for t in neighbors for n in np.asarray(t).tolist()]
    ends = np.concatenate([np.repeat(np.arange(len(x)), np.asarray(c)) for c in count])
    return oprack.to_tensor(np.asarray(sources, x.dtype)), oprack.to_tensor(ends.astype(x.dtype)), nodes


def _total(count: Any) -> Tensor:
    total = count[0]
    for c in count[1:]:
        total = total + c
    return total


def sample_neighbors(
    row: Tensor, colptr: Tensor, input_nodes: Tensor, sample_size: int = -1, eids: Any = None,
    return_eids: bool = False,
    perm_buffer: Any = None, name: Any = None,
) -> Any:  # fmt: skip
    """Some neighbours of nodes, and how many of each."""
    found = F.graph_sample_neighbors(row, colptr, input_nodes, eids, sample_size=sample_size, return_eids=return_eids)
    return found if return_eids else tuple(found[:2])


def weighted_sample_neighbors(
    row: Tensor, colptr: Tensor, edge_weight: Tensor, input_nodes: Tensor, sample_size: int = -1, eids: Any = None,
    return_eids: bool = False, name: Any = None,
) -> Any:  # fmt: skip
    """Some neighbours of nodes, drawn by the weights of edges, and how many of each."""
    found = F.weighted_sample_neighbors(
        row, colptr, edge_weight, input_nodes, eids, sample_size=sample_size, return_eids=return_eids
    )
    return found if return_eids else tuple(found[:2])
