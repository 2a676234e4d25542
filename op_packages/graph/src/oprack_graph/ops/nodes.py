"""Definitions of ops on the nodes of a graph."""

from __future__ import annotations

from oprack.op import InferShapeContext, InferVarTypeContext, Input, OpDef, Output, dtype_of, empty_grad


class GraphReindex(OpDef, type="graph_reindex"):
    r"""$$Out\_Nodes_{Reindex\_Src_e} = Neighbors_e, \; Out\_Nodes_{Reindex\_Dst_e} = X_i$$ for the Count_i neighbours e
    of node i

    A sample of a graph with nodes numbered from 0 on: those of X first, then their neighbours as they come.
    """

    X = Input("Nodes of which neighbours were sampled [N], int32 or int64, each once.")
    Neighbors = Input("Neighbours of all of them, one node after the other [E].")
    Count = Input("Neighbours of each node, int32: [N], or [N k] where Neighbors holds those of k kinds of edges.")
    HashTable_Value = Input("Paddle: a buffer of its GPU kernel.", dispensable=True)
    HashTable_Index = Input("Paddle: a buffer of its GPU kernel.", dispensable=True)
    Reindex_Src = Output("New numbers of Neighbors [E].")
    Reindex_Dst = Output("New numbers of the nodes whose neighbours they are [E].")
    Out_Nodes = Output("Old number of each new one.")
    make_grad = empty_grad
    expected_kernel_type = dtype_of("X")

    def infer_shape(ctx: InferShapeContext) -> None:
        for slot in ("X", "Neighbors", "Count"):
            ctx.require_rank(slot, 1)
        for slot in ("Reindex_Src", "Reindex_Dst"):
            ctx.set_dim(slot, ctx.dim("Neighbors"))
        ctx.set_dim("Out_Nodes", (-1,))

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        for slot in ("Reindex_Src", "Reindex_Dst", "Out_Nodes"):
            ctx.set_dtype(slot, ctx.dtype("X"))
