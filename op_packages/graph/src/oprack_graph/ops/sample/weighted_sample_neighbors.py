"""weighted_sample_neighbors: all of the op but its kernel."""

from __future__ import annotations

from oprack.op import REQUIRED, Attr, InferShapeContext, InferVarTypeContext, Input, OpDef, Output, dtype_of, empty_grad
from oprack.types import AttrType

from oprack_graph.ops.sample._family import infer_sample


class WeightedSampleNeighbors(OpDef, type="weighted_sample_neighbors"):
    r"""$$out\_neighbors = (S_{v_0}, S_{v_1}, \dots), \; S_v \subseteq row_{colptr_v \dots colptr_{v+1} - 1}$$ for the
    nodes v of input_nodes

    As graph_sample_neighbors, but where a node has more than sample_size neighbours, each next one is drawn with a
    probability that is as its edge's weight among those that are left.
    """

    row = Input("Neighbours of all nodes, one node after the other.")
    colptr = Input("Where each node's neighbours begin in row, and the end [nodes + 1].")
    edge_weight = Input("float32 weights of the edges, as row.")
    input_nodes = Input("Nodes to sample for [N].")
    eids = Input("Numbers of the edges, as row.", dispensable=True)
    out_neighbors = Output("Neighbours, one node after the other.")
    out_count = Output("int32 [N], how many of each.")
    out_eids = Output("Numbers of their edges; with return_eids.")
    sample_size = Attr(REQUIRED, "At most so many of a node; -1: all.", type=AttrType.INT)
    return_eids = Attr(REQUIRED, "Whether to give out_eids.", type=AttrType.BOOLEAN)
    make_grad = empty_grad
    expected_kernel_type = dtype_of("row")

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.same_size("row", "edge_weight")
        outputs = ("out_neighbors", "out_count", "out_eids")
        infer_sample(ctx, ("row", "colptr"), "input_nodes", "eids", outputs)

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        for slot in ("out_neighbors", "out_eids"):
            ctx.set_dtype(slot, ctx.dtype("row"))
        ctx.set_dtype("out_count", "int32")
