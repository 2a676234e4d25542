"""moving_average_abs_max_scale: all of the op but its kernels."""

from __future__ import annotations

from oprack.op import InferShapeContext, Input, OpDef, OpVersion, Output
from oprack.op.families import like

from oprack_quantization.ops._attrs import IS_TEST, MOVING_RATE
from oprack_quantization.ops._rules import moving_average, straight_through
from oprack_quantization.ops.fake import _family


class MovingAverageAbsMaxScale(OpDef, type="moving_average_abs_max_scale"):
    r"""$$OutAccum = r\,InAccum + \max |X|,\quad OutState = r\,InState + 1,\quad OutScale = OutAccum / OutState$$

    with $r$ = moving_rate; Out is X.
    """

    X = _family.X
    InAccum = Input("[1]: the sum so far.", dispensable=True)
    InState = Input("[1]: the weight of the sum so far.", dispensable=True)
    Out = Output("X.", dispensable=True)
    OutScale = Output(
        "[1]: the average; what InAccum and InState say with `is_test`, or 0 without them.", stop_gradient=True
    )
    OutState = Output("[1]: the new weight.", dispensable=True, stop_gradient=True)
    OutAccum = Output("[1]: the new sum.", dispensable=True, stop_gradient=True)
    moving_rate = MOVING_RATE
    is_test = IS_TEST
    make_grad = straight_through
    versions = (
        OpVersion("moving_average_abs_max_scale")
        .checkpoint("Out was taken out.", ("modify_output", "Out", ""))
        .checkpoint("Out is back.", ("new_output", "Out", ""))
    )

    def infer_shape(ctx: InferShapeContext) -> None:
        like(ctx, [("Out", "X")])
        moving_average(ctx)
