"""hash_embedding: all of the op but its kernels."""

from __future__ import annotations

from oprack.op import Attr, GradOpDef, InferShapeContext, InferVarTypeContext, Input, OpDef, Output, dtype_of


class HashEmbedding(OpDef, type="hash_embedding"):
    r"""$$Out_i = \sum_{j=1}^{hashes} W_{h_j(Ids_i) \bmod rows}$$

    Any integer is an id: there is no vocabulary. Two ids share a row of W now and then, but seldom all of them.
    $h_j(x)$ is the finalizer of SplitMix64 at $x + j \cdot \phi$ in 64 bits, with $\phi$ = 0x9E3779B97F4A7C15.
    """

    Ids = Input("Integers of any shape.")
    W = Input("[rows, width].")
    Out = Output("Shape of Ids and then width; LoD of Ids.")
    hashes = Attr(2, "Rows that are summed for one id.").check(lambda v: 0 < v <= 16, "1 to 16")
    expected_kernel_type = dtype_of("W")

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        ctx.set_dtype("Out", ctx.dtype("W"))

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.require_rank("W", 2)
        rows, width = ctx.dim("W")
        ctx.require(rows != 0, "W has no rows into which ids could be hashed")
        ctx.set_dim("Out", [*ctx.dim("Ids"), width])
        ctx.share_lod("Ids", "Out")


class HashEmbeddingGrad(GradOpDef, of=HashEmbedding, reads="Ids", shape_of="W", grads_of="W"):
    r"""$$W@GRAD_r = \sum_{i, j : h_j(Ids_i) \bmod rows = r} Out@GRAD_i$$"""

    expected_kernel_type = dtype_of("Out@GRAD")
