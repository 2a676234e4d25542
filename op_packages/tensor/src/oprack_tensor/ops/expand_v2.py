"""expand_v2: all of the op but its kernels."""

from __future__ import annotations

from oprack.op import Attr, GradOpDef, InferShapeContext, Input, OpDef, Output, dtype_of
from oprack.op.families import MKLDNN_DATA_TYPE, USE_MKLDNN
from oprack.op.sbp import SbpContext, Signature, factors, letters, split
from oprack.types import AttrType

from oprack_tensor.dims import broadcast_dims, given_ints


class ExpandV2(OpDef, type="expand_v2"):
    r"""$$Out_{i} = X_{i'}$$ where i' is i in the dims of X, and 0 where X has size 1: X broadcast to `shape`; -1 keeps
    a dim of X.
    """

    X = Input("Tensor of any shape.")
    Shape = Input("int32 or int64 [n], overrides `shape`.", dispensable=True)
    expand_shapes_tensor = Input("n one-element tensors, override `shape`.", dispensable=True, duplicable=True)
    Out = Output("X broadcast; LoD of X while the first dim stays.")
    shape = Attr([], "Shape of Out.", type=AttrType.INTS)
    use_mkldnn = USE_MKLDNN
    mkldnn_data_type = MKLDNN_DATA_TYPE
    expected_kernel_type = dtype_of("X")

    def sbp(ctx: SbpContext) -> list[Signature]:
        if ctx.has("Shape") or ctx.has("expand_shapes_tensor"):
            return []
        x, out = ctx.dim("X"), ctx.dim("Out")
        new = len(out) - len(x)
        names = [n if a == b else None for n, a, b in zip(letters(len(x)), x, out[new:], strict=True)]
        found = factors({"X": names}, {"Out": [None] * new + names}, linear=(("X",),), sizes={"shape": "Out"})
        copies = [k for k in range(len(out)) if k < new or x[k - new] == 1]
        return found + [Signature({}, {"Out": split(k)}, sizes={"shape": "Out"}) for k in copies]

    def infer_shape(ctx: InferShapeContext) -> None:
        dims = ctx.dim("X")
        shape = given_ints(ctx, "shape", "Shape", "expand_shapes_tensor", likely=len(dims), open_marks=(-1, -2))
        out = broadcast_dims(ctx.op_type, dims, shape)
        ctx.set_dim("Out", out)
        if dims and out and dims[0] == out[0]:
            ctx.share_lod("X", "Out")


class ExpandV2Grad(GradOpDef, of=ExpandV2, shape_of="X Shape expand_shapes_tensor", grads_of="X", linear=True):
    """X@GRAD sums Out@GRAD over the dims that were broadcast."""
