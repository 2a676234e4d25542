"""merge_lod_tensor_infer: its definition; the operator is in the file of this name below operators."""

from __future__ import annotations

from oprack.op import empty_grad

from oprack_control_flow.ops.mask._merge import MergeOp


class MergeLoDTensorInfer(MergeOp, type="merge_lod_tensor_infer"):
    r"""merge_lod_tensor without a gradient: $$Out_i = InTrue_{k(i)}$$ where $$Mask_i$$, else
    $$InFalse_{i - k(i)}$$.
    """

    make_grad = empty_grad
