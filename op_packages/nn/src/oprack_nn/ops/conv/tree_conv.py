"""tree_conv (Paddle 1.x) and its gradient: all of the ops but their kernels."""

from __future__ import annotations

from oprack.op import Attr, GradOpDef, InferShapeContext, Input, OpDef, Output, dtype_of


class TreeConv(OpDef, type="tree_conv"):
    r"""$$Out_u = \sum_{v} (\eta^l_v W_l + \eta^r_v W_r + \eta^t_v W_t) NodesVector_v$$ over the nodes v at most
    max_depth - 1 levels below u, with $$\eta^t = 1 - d / max\_depth, \; \eta^l = (1 - \eta^t) p, \; \eta^r = (1 -
    \eta^t)(1 - \eta^l)$$

    d is how far v is below u and p from 0 to 1 its place among its siblings, 1/2 for an only child. A window of a
    syntax tree (TBCNN, Mou et al., 2016).
    """

    NodesVector = Input("Features of nodes [B, n, F].")
    EdgeSet = Input("int32 [B, edges, 2]: parent and child, counted from 1; a 0 ends the list.")
    Filter = Input("[F, 3, output_size, num_filters], for left, right and top.")
    Out = Output("[B, n, output_size, num_filters].")
    max_depth = Attr(2, "Levels of a window.").greater_than(1)
    expected_kernel_type = dtype_of("NodesVector")

    def infer_shape(ctx: InferShapeContext) -> None:
        batch, nodes, width = ctx.require_rank("NodesVector", 3)
        ctx.require_dims("EdgeSet", (batch, -1, 2), why="parent and child of each edge")
        ctx.require_dims("Filter", (width, 3, -1, -1), why="the features of nodes, three times")
        ctx.set_dim("Out", (batch, nodes, *ctx.dim("Filter")[2:]))


class TreeConvGrad(GradOpDef, of=TreeConv, reads="NodesVector EdgeSet Filter", grads_of="NodesVector Filter"):
    """The sums of the forward op the other way round: of Out@GRAD by node, and by filter."""

    expected_kernel_type = dtype_of("NodesVector")
