"""generate_proposals: all of the op but its kernels."""

from __future__ import annotations

from oprack.op import InferShapeContext, Input, OpVersion

from oprack_detection.ops.proposal._generate_proposals import ANCHORS, VARIANCES, ProposalsOp, infer_proposals


class GenerateProposals(ProposalsOp, type="generate_proposals"):
    r"""$$c = v_c \delta_c s_a + c_a, \quad s = e^{\min(v_s \delta_s, \log(1000/16))} s_a$$

    Proposals of a region network (Ren et al., 2015): BboxDeltas d and Variances v give the centre c and size s of each
    box from those of its anchor. Of the pre_nms_topN best boxes, clipped to the image and not smaller than min_size,
    one is kept when it overlaps no better one that is kept by more than nms_thresh; post_nms_topN of them at most. LoD
    tells the images apart.
    """

    ImInfo = Input("Height, width and scale of each image [N, 3].")
    Anchors = ANCHORS
    Variances = VARIANCES
    versions = (
        OpVersion("generate_proposals")
        .checkpoint("the unused output RpnRoisLod is gone", ("delete_output", "RpnRoisLod", None))
        .checkpoint("proposals per image as a tensor", ("new_output", "RpnRoisNum", None))
    )

    def infer_shape(ctx: InferShapeContext) -> None:
        infer_proposals(ctx, "ImInfo", 3)
        ctx.set_lod_level("RpnRois", 1)
        ctx.set_lod_level("RpnRoiProbs", 1)
