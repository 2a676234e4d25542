"""tdm_child: all of the op but its kernel."""

from __future__ import annotations

from oprack.op import REQUIRED, Attr, InferShapeContext, InferVarTypeContext, Input, OpDef, Output, dtype_of, empty_grad
from oprack.types import AttrType, VarType


class TdmChild(OpDef, type="tdm_child"):
    r"""$$Child_{i,j} = TreeInfo_{X_i, 3 + j}, \; LeafMask_{i,j} = 1$$ where that child holds an item, else 0

    Children of nodes in a tree over items (tree-based deep models, Zhu et al., 2018). Node 0 is none: it, and a node
    without children, has children 0.
    """

    X = Input("Nodes of any shape, int32 or int64.")
    TreeInfo = Input("For each node its item (0: none), level, parent and children [nodes, 3 + child_nums].")
    Child = Output("Children of each node [..., child_nums].")
    LeafMask = Output("1 for a child that holds an item [..., child_nums].")
    child_nums = Attr(REQUIRED, "Children of a node.", type=AttrType.INT).greater_than(0)
    dtype = Attr(int(VarType.INT32), "Type of the outputs: INT32 or INT64.").in_set(
        (int(VarType.INT32), int(VarType.INT64))
    )
    make_grad = empty_grad
    expected_kernel_type = dtype_of("X")

    def infer_shape(ctx: InferShapeContext) -> None:
        count = ctx.attr("child_nums")
        ctx.require_dims("TreeInfo", (-1, 3 + count), why="item, level, parent and the children")
        for slot in ("Child", "LeafMask"):
            ctx.set_dim(slot, (*ctx.dim("X"), count))

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        for slot in ("Child", "LeafMask"):
            ctx.set_dtype(slot, ctx.attr("dtype"))
