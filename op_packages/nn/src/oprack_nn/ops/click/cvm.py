"""cvm and its gradient: all of the ops but their kernels."""

from __future__ import annotations

from oprack.op import Attr, GradOpDef, InferShapeContext, Input, OpDef, Output, dtype_of
from oprack.op.sbp import leading


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
