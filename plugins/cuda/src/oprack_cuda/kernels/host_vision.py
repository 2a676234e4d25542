"""Detection ops that decide box after box, on the host."""

from __future__ import annotations

from oprack_vision.kernels.box_clip import box_clip
from oprack_vision.kernels.collect_fpn_proposals import collect_fpn_proposals
from oprack_vision.kernels.distribute_fpn_proposals import distribute_fpn_proposals
from oprack_vision.kernels.generate_proposals import generate_proposals, generate_proposals_v2
from oprack_vision.kernels.matrix_nms import matrix_nms
from oprack_vision.kernels.multiclass_nms import multiclass_nms, multiclass_nms2, multiclass_nms3
from oprack_vision.kernels.yolov3_loss import yolov3_loss, yolov3_loss_grad

from oprack_cuda.host_kernel import kernels_on_host

globals().update(
    kernels_on_host(
        __name__,
        box_clip,
        collect_fpn_proposals,
        distribute_fpn_proposals,
        generate_proposals,
        generate_proposals_v2,
        matrix_nms,
        multiclass_nms,
        multiclass_nms2,
        multiclass_nms3,
        yolov3_loss,
        yolov3_loss_grad,
    )
)
