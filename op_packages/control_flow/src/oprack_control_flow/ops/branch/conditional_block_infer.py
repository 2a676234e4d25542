"""conditional_block_infer: its definition; the operator is in the file of this name below operators."""

from __future__ import annotations

from oprack.op import Output, empty_grad

from oprack_control_flow.ops.branch._conditional import ConditionalOp


class ConditionalBlockInfer(ConditionalOp, type="conditional_block_infer"):
    r"""conditional_block without a gradient: $$Out = block(Input)$$ where Cond is true."""

    Scope = Output("Not used.")
    make_grad = empty_grad
