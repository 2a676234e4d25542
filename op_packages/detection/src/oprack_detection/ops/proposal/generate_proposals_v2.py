"""generate_proposals_v2: all of the op but its kernels."""

from __future__ import annotations

from oprack.op import Attr, InferShapeContext, Input, OpVersion

from oprack_detection.ops.proposal._generate_proposals import ANCHORS, VARIANCES, ProposalsOp, infer_proposals


class GenerateProposalsV2(ProposalsOp, type="generate_proposals_v2"):
    r"""$$c = v_c \delta_c s_a + c_a, \quad s = e^{\min(v_s \delta_s, \log(1000/16))} s_a$$

    As generate_proposals, with the sizes of images alone, and exclusive corners without pixel_offset.
    """

    ImShape = Input("Height and width of each image [N, 2].")
    Anchors = ANCHORS
    Variances = VARIANCES
    pixel_offset = Attr(True, "Corners are pixels, so a box is xmax - xmin + 1 wide.")
    versions = OpVersion("generate_proposals_v2").checkpoint(
        "boxes may have exact corners", ("new_attr", "pixel_offset", True)
    )

    def infer_shape(ctx: InferShapeContext) -> None:
        infer_proposals(ctx, "ImShape", 2)
