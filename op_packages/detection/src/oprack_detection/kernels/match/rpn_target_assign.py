"""Kernel of rpn_target_assign."""

from __future__ import annotations

from oprack.kernel import Array, KernelContext, kernel
from oprack.tensor import LoDTensor
from oprack.types import FLOATS

from oprack_detection.kernels.match._anchors import anchor_targets
from oprack_detection.kernels.match._sampling import sampler


@kernel("rpn_target_assign", dtypes=FLOATS)
def rpn_target_assign(
    Anchor: Array,
    GtBoxes: Array,
    IsCrowd: Array,
    ImInfo: Array,
    *,
    rpn_batch_size_per_im: int,
    rpn_straddle_thresh: float,
    rpn_positive_overlap: float,
    rpn_negative_overlap: float,
    rpn_fg_fraction: float,
    use_random: bool,
    ctx: KernelContext,
) -> tuple[LoDTensor, ...]:
    overlap = (rpn_positive_overlap, rpn_negative_overlap)
    sampling = (rpn_batch_size_per_im, rpn_fg_fraction, sampler(ctx, use_random))
    return anchor_targets(Anchor, GtBoxes, None, IsCrowd, ImInfo, overlap, sampling, rpn_straddle_thresh, ctx)[:5]
