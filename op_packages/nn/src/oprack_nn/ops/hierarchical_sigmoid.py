"""hierarchical_sigmoid and its gradient: all of the ops but their kernels."""

from __future__ import annotations

from oprack.op import Attr, GradOpDef, InferShapeContext, InferVarTypeContext, Input, OpDef, Output, dtype_of
from oprack.types import AttrType, VarType


def _output_dims(ctx: InferShapeContext) -> tuple[int, int]:
    return ctx.require_rank("X", 2)[0], 1


def _depth(ctx: InferShapeContext) -> int:
    """Most nodes of a path."""
    if ctx.has_input("PathTable"):
        return ctx.require_rank("PathTable", 2)[1]
    return (ctx.attr("num_classes") - 1).bit_length()


def _path_dims(ctx: InferShapeContext) -> tuple[int, int]:
    """[N, depth], after a look at the inputs that say what the paths are."""
    n = ctx.require_rank("X", 2)[0]
    ctx.require(
        ctx.has_input("PathTable") == ctx.has_input("PathCode"),
        "PathTable and PathCode have to be given together; expected both for a tree of your own, else neither",
    )
    depth = _depth(ctx)
    ctx.require_dims("PathTable", (n, depth))
    ctx.require_dims("PathCode", (n, depth))
    return n, depth


class HierarchicalSigmoid(OpDef, type="hierarchical_sigmoid"):
    r"""$$Out = \sum_j \log(1 + e^{z_j}) - code_j z_j$$ with $$z_j = \min(\max(W_{node_j} \cdot X + Bias_{node_j}, -40),
    40)$$

    The loss of a path through a binary tree of classes, by left and right turns (Morin and Bengio, 2005). Without
    PathTable the tree is complete, and node and code of level j are bits of Label + num_classes. Places behind the end
    of a path have z = 0, so each adds log 2, as in Paddle.
    """

    X = Input("[N, D].")
    W = Input("A row for each inner node of the tree [num_classes - 1, D].")
    Label = Input("Classes [N, 1], int64.")
    PathTable = Input("Nodes on the way to each label [N, depth], int64; -1 behind the end.", dispensable=True)
    PathCode = Input("Turns at these nodes [N, depth], int64: 0 or 1.", dispensable=True)
    Bias = Input("[num_classes - 1, 1].", dispensable=True)
    Out = Output("Losses [N, 1].")
    PreOut = Output("log(1 + e^z) [N, depth], kept for the gradient.", intermediate=True)
    W_Out = Output("Paddle: W as it is in place.", intermediate=True)
    num_classes = Attr(2, "Number of classes.").at_least(2)
    trainer_id = Attr(0, "Paddle: number of this trainer.")
    height_sections = Attr([], "Paddle: rows per parameter server.", type=AttrType.LONGS)
    epmap = Attr([], "Paddle: parameter servers.", type=AttrType.STRINGS)
    table_names = Attr([], "Paddle: tables on parameter servers.", type=AttrType.STRINGS)
    is_sparse = Attr(False, "The gradient of W is SelectedRows.")
    expected_kernel_type = dtype_of("X")

    def infer_shape(ctx: InferShapeContext) -> None:
        n, width = ctx.require_rank("X", 2)
        ctx.require_dims("W", (-1, width), why="the width of X")
        ctx.require_dims("Label", (n, 1), why="a label for each row of X")
        ctx.set_dim("Out", _output_dims(ctx))
        ctx.set_dim("PreOut", _path_dims(ctx))
        ctx.set_dim("W_Out", ctx.dim("W"))

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        for slot in ("Out", "PreOut", "W_Out"):
            ctx.set_dtype(slot, ctx.dtype("X"))


class HierarchicalSigmoidGrad(
    GradOpDef,
    of=HierarchicalSigmoid,
    reads="X W Label PathTable PathCode Bias PreOut",
    grads_of="X W Bias",
    dims={"Out@GRAD": _output_dims, "PathTable": _path_dims},
):
    r"""$$z_j@GRAD = (\sigma(z_j) - code_j) Out@GRAD$$, and from there to X, W and Bias"""

    expected_kernel_type = dtype_of("X")

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        for slot in ("X", "W", "Bias"):
            if ctx.has_input(slot) and ctx.has_output(f"{slot}@GRAD"):
                ctx.set_dtype(f"{slot}@GRAD", ctx.dtype(slot))
        if ctx.has_output("W@GRAD"):
            ctx.set_kind("W@GRAD", VarType.SELECTED_ROWS if ctx.attr("is_sparse") else VarType.LOD_TENSOR)
