"""Rules of splitting: how an op may be computed on parts of its tensors, for the facet `sbp` of definitions.

A rule gets an SbpContext and returns signatures: what each input has to be along one axis of ranks, and what the
outputs are then. That every rank has all of every tensor is always allowed and need not be written. Gradient ops need
no rules: their signatures follow from those of the forward op.
"""

from oprack.op.sbp.rules import (
    Rule,
    all_but,
    binary,
    convolution,
    elementwise,
    factors,
    leading,
    linear_unary,
    reduction,
    regrouped,
    sequences,
    transposed_convolution,
    unary,
)
from oprack.op.sbp.signature import (
    Sbp,
    SbpContext,
    Signature,
    broadcast,
    broadcast_names,
    letters,
    merged_names,
    partial_sum,
    product_names,
    sbp_of,
    split,
)

__all__ = [
    "Rule",
    "Sbp",
    "SbpContext",
    "Signature",
    "all_but",
    "binary",
    "broadcast",
    "broadcast_names",
    "convolution",
    "elementwise",
    "factors",
    "leading",
    "letters",
    "linear_unary",
    "merged_names",
    "partial_sum",
    "product_names",
    "reduction",
    "regrouped",
    "sbp_of",
    "sequences",
    "split",
    "transposed_convolution",
    "unary",
]
