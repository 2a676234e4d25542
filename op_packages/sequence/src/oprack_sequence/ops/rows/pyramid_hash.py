"""pyramid_hash and its gradient: all of the ops but their kernels."""

from __future__ import annotations

from oprack.op import Attr, GradOpDef, InferShapeContext, InferVarTypeContext, Input, OpDef, Output, dtype_of


class PyramidHash(OpDef, type="pyramid_hash"):
    r"""$$Out_t = (W_{h_0(t)}, \dots, W_{h_0(t) + r - 1}, W_{h_r(t)}, \dots), \; h_j(t) = \operatorname{XXH32}_j(t)
    \bmod space\_len$$ with r = rand_len, for the terms t: 2 to pyramid_layer ids in a row, as float32

    Embeddings of word n-grams that share one table by hashing (Pyramid hash embedding, Chen et al., 2019): num_emb
    numbers, taken r at a time. Terms stand by their length, then by their place; a sequence without one gives a row of
    zeros. With use_filter a term has to be in the Bloom filter WhiteList and not in BlackList, where there are such. In
    training a term is dropped by chance, and otherwise Out is multiplied by drop_out_percent.
    """

    X = Input("Ids [N, 1], int32, with LoD.")
    W = Input("Numbers of which embeddings are made [space_len + rand_len, 1].")
    WhiteList = Input("A Bloom filter [white_list_len, 1]: four uint64 (mark, bits, hashes, count), then the bits.")
    BlackList = Input("A Bloom filter [black_list_len, 1], as WhiteList.")
    Out = Output("[terms, num_emb] with the LoD of its sequences.")
    DropPos = Output("1 for each possible term that is left, int32 [N pyramid_layer, 1]; 0 behind the last.")
    X_Temp_Out = Output("X as float32.", intermediate=True)
    num_emb = Attr(0, "Width of an embedding, a multiple of rand_len.").at_least(0)
    space_len = Attr(0, "Places at which parts of an embedding begin.").at_least(0)
    pyramid_layer = Attr(2, "Ids of the longest term.").at_least(2)
    rand_len = Attr(0, "Numbers that are taken at once.").at_least(0)
    drop_out_percent = Attr(0.0, "Share of terms that training drops; what Out is multiplied by otherwise.").at_least(0)
    is_training = Attr(0, "Not 0 in training.").at_least(0)
    use_filter = Attr(True, "Ask the lists.")
    white_list_len = Attr(0, "Length of WhiteList; 0: none.").at_least(0)
    black_list_len = Attr(0, "Length of BlackList; 0: none.").at_least(0)
    seed = Attr(0, "Seed of the draws.").at_least(0)
    lr = Attr(0.0, "Paddle: the step by which its gradient op changes W itself.").at_least(0)
    distribute_update_vars = Attr("", "Paddle: parameters that its transpiler sends to servers.")
    expected_kernel_type = dtype_of("W")

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.require_lod("X")
        dims = ctx.require_rank("X", 2)
        width, space, part = (ctx.attr(name) for name in ("num_emb", "space_len", "rand_len"))
        ctx.require(
            space > 0 and part > 0 and width % part == 0,
            f"num_emb is {width}, space_len {space} and rand_len {part}; expected space_len and rand_len above 0, and "
            "num_emb as a multiple of rand_len",
        )
        ctx.require_dims("W", (space + part, 1), why="space_len + rand_len numbers")
        for slot, name in (("WhiteList", "white_list_len"), ("BlackList", "black_list_len")):
            if ctx.attr(name):
                ctx.require(ctx.has_input(slot), f"{name} is {ctx.attr(name)}, and {slot} is absent")
                ctx.require_dims(slot, (ctx.attr(name), 1), why=name)
        ctx.set_dim("Out", (-1, width))
        ctx.set_dim("DropPos", (-1, 1))
        ctx.set_dim("X_Temp_Out", dims)
        ctx.share_lod("X", "Out")

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        ctx.set_dtype("Out", ctx.dtype("W"))
        ctx.set_dtype("DropPos", "int32")
        ctx.set_dtype("X_Temp_Out", "float32")


class PyramidHashGrad(
    GradOpDef, of=PyramidHash, reads="X W DropPos X_Temp_Out Out@GRAD", shape_of="W", grads_of="X? W?", lod=False
):
    """W@GRAD sums Out@GRAD at the places that were read; ids have no gradient, so X@GRAD is not written.

    Paddle's op has no W@GRAD: it takes a step of lr against it in W itself.
    """

    expected_kernel_type = dtype_of("Out@GRAD")
