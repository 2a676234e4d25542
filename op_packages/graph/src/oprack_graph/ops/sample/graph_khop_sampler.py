"""graph_khop_sampler: all of the op but its kernel."""

from __future__ import annotations

from oprack.op import Attr, InferShapeContext, InferVarTypeContext, Input, OpDef, Output, dtype_of, empty_grad
from oprack.types import AttrType

from oprack_graph.ops.sample._family import infer_sample


class GraphKhopSampler(OpDef, type="graph_khop_sampler"):
    r"""$$F_0 = X, \; S_{v} \subseteq Row_{Col\_Ptr_v \dots Col\_Ptr_{v+1} - 1}, \; F_{h+1} = \bigcup_{v \in F_h} S_v
    \setminus (F_0 \cup \dots \cup F_h)$$ and an edge from each u of S_v to v

    The neighbours of X, theirs, and so on for as many hops as sample_sizes has numbers: for each node that a hop
    reaches first, all of its neighbours or sample_sizes_h of them at random. Sample_Index lists F_0, F_1 ..., each but
    the first in rising order, and behind them the nodes of the last hop as they come; edges are numbered by it.
    """

    Row = Input("Neighbours of all nodes, one node after the other.")
    Eids = Input("Numbers of the edges, as Row.", dispensable=True)
    Col_Ptr = Input("Where each node's neighbours begin in Row, and the end [nodes + 1].")
    X = Input("Nodes to begin with [N].")
    Out_Src = Output("New number of the node at which each edge begins [E, 1].")
    Out_Dst = Output("New number of the node at which it ends, whose neighbour was sampled [E, 1].")
    Sample_Index = Output("Old number of each new one.")
    Reindex_X = Output("New numbers of X [N].")
    Out_Eids = Output("Numbers of the edges [E]; with return_eids.", intermediate=True)
    sample_sizes = Attr([], "At most so many neighbours of a node in each hop; -1: all.", type=AttrType.INTS)
    return_eids = Attr(False, "Whether to give Out_Eids.")
    make_grad = empty_grad
    expected_kernel_type = dtype_of("Row")

    def infer_shape(ctx: InferShapeContext) -> None:
        infer_sample(ctx, ("Row", "Col_Ptr"), "X", "Eids", ("Sample_Index", "Reindex_X", "Out_Eids"))
        ctx.set_dim("Out_Src", (-1, 1))
        ctx.set_dim("Out_Dst", (-1, 1))

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        for slot in ctx.proto.outputs:
            ctx.set_dtype(slot, ctx.dtype("Row"))
