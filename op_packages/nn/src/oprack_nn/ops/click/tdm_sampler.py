"""tdm_sampler: all of the op but its kernel."""

from __future__ import annotations

import itertools

from oprack.op import Attr, InferShapeContext, InferVarTypeContext, Input, OpDef, Output, dtype_of, empty_grad
from oprack.types import AttrType, VarType


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
