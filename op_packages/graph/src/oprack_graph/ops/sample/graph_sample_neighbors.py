"""graph_sample_neighbors: all of the op but its kernel."""

from __future__ import annotations

from oprack.op import Attr, InferShapeContext, InferVarTypeContext, Input, OpDef, Output, dtype_of, empty_grad

from oprack_graph.ops.sample._family import infer_sample


class GraphSampleNeighbors(OpDef, type="graph_sample_neighbors"):
    r"""$$Out = (S_{X_0}, S_{X_1}, \dots), \; S_v \subseteq Row_{Col\_Ptr_v \dots Col\_Ptr_{v+1} - 1}, \; Out\_Count_i =
    |S_{X_i}|$$

    For each node all of its neighbours in their order, or sample_size of them at random where it has more.
    """

    Row = Input("Neighbours of all nodes, one node after the other.")
    Col_Ptr = Input("Where each node's neighbours begin in Row, and the end [nodes + 1].")
    X = Input("Nodes to sample for [N].")
    Eids = Input("Numbers of the edges, as Row.", dispensable=True)
    Perm_Buffer = Input("Paddle: a buffer of its GPU kernel.", dispensable=True)
    Out = Output("Neighbours, one node of X after the other.")
    Out_Count = Output("int32 [N], how many of each.")
    Out_Eids = Output("Numbers of their edges; with return_eids.")
    sample_size = Attr(-1, "At most so many of a node; -1: all.")
    return_eids = Attr(False, "Whether to give Out_Eids.")
    flag_perm_buffer = Attr(False, "Paddle: use Perm_Buffer.")
    make_grad = empty_grad
    expected_kernel_type = dtype_of("Row")

    def infer_shape(ctx: InferShapeContext) -> None:
        infer_sample(ctx, ("Row", "Col_Ptr"), "X", "Eids", ("Out", "Out_Count", "Out_Eids"))

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        for slot in ("Out", "Out_Eids"):
            ctx.set_dtype(slot, ctx.dtype("Row"))
        ctx.set_dtype("Out_Count", "int32")
