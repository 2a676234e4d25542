"""merge_lod_tensor_infer: its definition; the operator is in the file of this name below operators."""

from __future__ import annotations

from oprack.op import empty_grad

from oprack_control_flow.ops.mask._merge import MergeOp


class MergeLoDTensorInfer(MergeOp, type="merge_lod_tensor_infer"):
    """merge_lod_tensor without a gradient."""

    make_grad = empty_grad
