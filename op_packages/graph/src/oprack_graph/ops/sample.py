"""Samples of the neighbours of nodes."""

from __future__ import annotations

from oprack.op import REQUIRED, Attr, InferShapeContext, InferVarTypeContext, Input, OpDef, Output, dtype_of, empty_grad
from oprack.types import AttrType


# The shape rule of samples of neighbours.
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
