"""Definitions of ops for models of clicks: their features and statistics."""

from __future__ import annotations

import itertools

from oprack.op import (
    REQUIRED,
    Attr,
    GradOpDef,
    InferShapeContext,
    InferVarTypeContext,
    Input,
    OpDef,
    Output,
    dtype_of,
    empty_grad,
)
from oprack.op.sbp import leading
from oprack.types import AttrType, VarType


def _output_dims(ctx: InferShapeContext) -> tuple[int, int]:
    rows, width = ctx.require_rank("X", 2)
    ctx.require_dims("CVM", (-1, 2), why="show and click of each instance")
    ctx.require(
        width < 0 or width >= 2, f"X has shape {[rows, width]}; expected show and click as its first two columns"
    )
    return rows, width if ctx.attr("use_cvm") or width < 0 else width - 2


class Cvm(OpDef, type="cvm"):
    r"""$$Y_0 = \log(X_0 + 1), Y_1 = \log(X_1 + 1) - Y_0$$ and the other columns as they are; without use_cvm the other
    columns alone

    X is a feature's embedding, whose first two columns count how often it was shown and clicked.
    """

    X = Input("[N, width], with LoD where instances have several rows.")
    CVM = Input("Show and click of each instance [instances, 2].")
    Y = Output("[N, width], or [N, width - 2] without use_cvm; LoD of X.")
    use_cvm = Attr(True, "Keep the columns of show and click.")
    expected_kernel_type = dtype_of("X")
    sbp = leading(("X", "CVM"), ("Y",))

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.set_dim("Y", _output_dims(ctx))
        ctx.share_lod("X", "Y")


class CvmGrad(GradOpDef, of=Cvm, reads="X CVM", shape_of="X", grads_of="X", dims={"Y@GRAD": _output_dims}):
    """Y@GRAD for the other columns; for show and click CVM, the counts by which the table of embeddings grows."""

    expected_kernel_type = dtype_of("Y@GRAD")


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


class TdmSampler(OpDef, type="tdm_sampler"):
    r"""For each item and layer of the tree $$Out = (Travel_{X, layer}, \text{noise}), \; noise \sim
    U(Layer \setminus Travel_{X, layer})$$ without repetition

    The path to an item against other nodes of each layer (tree-based deep models, Zhu et al., 2018). Labels are 1 for
    the path and 0 for noise; where the path has ended (node 0), all three outputs are 0.
    """

    X = Input("Items [N, 1].")
    Travel = Input("The node on the path to each item, by layer [items, layers]; 0 behind its end.")
    Layer = Input("Nodes of all layers, one after the other [nodes, 1].")
    Out = Output("Nodes [N, sum over layers of noise and 1].")
    Labels = Output("1 for a node on the path.", dispensable=True)
    Mask = Output("0 where there is no node.")
    output_positive = Attr(True, "Put the node on the path before the noise.")
    neg_samples_num_list = Attr([], "Noise nodes in each layer.", type=AttrType.INTS)
    layer_offset_lod = Attr([], "Where each layer begins in Layer, and the end.", type=AttrType.INTS)
    seed = Attr(0, "Seed of this op; 0 takes that of the program.")
    dtype = Attr(int(VarType.INT32), "Type of the outputs: INT32 or INT64.").in_set(
        (int(VarType.INT32), int(VarType.INT64))
    )
    make_grad = empty_grad
    expected_kernel_type = dtype_of("X")

    def infer_shape(ctx: InferShapeContext) -> None:
        noise, offsets = ctx.attr("neg_samples_num_list"), ctx.attr("layer_offset_lod")
        layers = len(noise)
        sizes = [b - a for a, b in itertools.pairwise(offsets)]
        ctx.require_dims("Travel", (-1, layers), why="a node for each layer of neg_samples_num_list")
        ctx.require(
            len(sizes) == layers and all(0 <= n < size for n, size in zip(noise, sizes, strict=True)),
            f"neg_samples_num_list is {list(noise)} and layer_offset_lod {list(offsets)}; expected an offset more than "
            "layers, and in each layer less noise than nodes",
        )
        ctx.require(
            not offsets or ctx.dim("Layer")[0] in (-1, offsets[-1]),
            f"Layer has {ctx.dim('Layer')[0]} nodes; expected {offsets[-1:]}, the last of layer_offset_lod",
        )
        width = sum(noise) + layers * ctx.attr("output_positive")
        for slot in ("Out", "Labels", "Mask"):
            ctx.set_dim(slot, (ctx.dim("X")[0], width))

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        for slot in ("Out", "Labels", "Mask"):
            ctx.set_dtype(slot, ctx.attr("dtype"))


class Unzip(OpDef, type="unzip"):
    r"""$$Y_i = X_{n_i}, \; n_i = |\{j < i : lod_{j+1} > lod_j\}|$$ where $lod_{i+1} > lod_i$, else 0

    The rows of X one after the other, with rows of zeros for the instances that have none. Paddle computes it on GPUs
    alone, and no gradient.
    """

    X = Input("Rows of the instances that have one [M, N].")
    lod = Input("Offsets of the instances, int32 or int64 [K + 1]: an instance has a row where they rise.")
    Y = Output("A row for each instance [K, N].")
    len = Attr(1, "Paddle: has no effect.")
    expected_kernel_type = dtype_of("X")

    def infer_shape(ctx: InferShapeContext) -> None:
        _, width = ctx.require_rank("X", 2)
        (offsets,) = ctx.require_rank("lod", 1)
        ctx.set_dim("Y", (offsets - 1 if offsets > 0 else -1, width))


class UnzipGrad(GradOpDef, of=Unzip, reads="X lod Y@GRAD", shape_of="X", grads_of="X"):
    """The rows of Y@GRAD of the instances that have one; zeros for rows of X that no instance took."""

    expected_kernel_type = dtype_of("Y@GRAD")
