"""Operator of merge_lod_tensor_infer."""

from __future__ import annotations

from oprack_control_flow.operators.mask.merge_lod_tensor import MergeLoDTensorOp


class MergeLoDTensorInferOp(MergeLoDTensorOp):
    op_type = "merge_lod_tensor_infer"
