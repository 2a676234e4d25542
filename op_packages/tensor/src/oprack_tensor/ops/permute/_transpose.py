"""What transpose and transpose2 share."""

from __future__ import annotations

from oprack.op import REQUIRED, Attr, IdentityContext, InferShapeContext, Input, OpDef, Output, normal_axis
from oprack.op.families import MKLDNN_DATA_TYPE, USE_MKLDNN
from oprack.op.sbp import SbpContext, Signature, factors, letters
from oprack.types import AttrType


def permutation(ctx: InferShapeContext, rank: int) -> list[int]:
    """The attribute axis, without negative dims. Refuses one that is no permutation of `rank` dims."""
    axes = [normal_axis(ctx.op_type, a, rank) for a in ctx.attr("axis")]
    ctx.require(
        sorted(axes) == list(range(rank)),
        f"axis is {ctx.attr('axis')} but the tensor has rank {rank}; expected each dim exactly once",
    )
    return axes


class TransposeOp(OpDef):
    """Dim i of Out is dim axis[i] of X."""

    X = Input("Tensor of any shape.")
    Out = Output("X with permuted dims; no LoD.")
    axis = Attr(REQUIRED, "A permutation of X's dims.", type=AttrType.INTS)
    use_mkldnn = USE_MKLDNN
    data_format = Attr("AnyLayout", "Memory layout of old programs.", extra=True)
    mkldnn_data_type = MKLDNN_DATA_TYPE

    def sbp(ctx: SbpContext) -> list[Signature]:
        names = letters(len(ctx.dim("X")))
        return factors({"X": names}, {"Out": [names[a] for a in ctx.attr("axis")]}, linear=(("X",),))

    def infer_shape(ctx: InferShapeContext) -> None:
        dims = ctx.dim("X")
        ctx.set_dim("Out", [dims[a] for a in permutation(ctx, len(dims))])

    def identity(ctx: IdentityContext) -> bool:
        return list(ctx.attr("axis")) == list(range(len(ctx.dim("X")))) and ctx.lod_level("X") == 0
