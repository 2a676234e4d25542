"""Kernel of retinanet_target_assign."""

from __future__ import annotations

from oprack.kernel import Array, KernelContext, kernel
from oprack.tensor import LoDTensor
from oprack.types import FLOATS

from oprack_detection.kernels.match._anchors import anchor_targets
from oprack_detection.kernels.match._sampling import sampler


@kernel("retinanet_target_assign", dtypes=FLOATS)
def retinanet_target_assign(
    Anchor: Array,
    GtBoxes: Array,
    GtLabels: Array,
    IsCrowd: Array,
    ImInfo: Array,
    *,
    positive_overlap: float,
    negative_overlap: float,
    ctx: KernelContext,
) -> tuple[LoDTensor, ...]:
    everything = (0, 0.0, sampler(ctx, use_random=False))
    overlap = (positive_overlap, negative_overlap)
    return anchor_targets(Anchor, GtBoxes, GtLabels, IsCrowd, ImInfo, overlap, everything, -1.0, ctx)
