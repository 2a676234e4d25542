"""How many floating-point operations a product takes, by the rule of splitting that its op declares."""

from __future__ import annotations

import math
from collections.abc import Sequence

from oprack.op.sbp_signature import SbpContext, Signature


def product_flops(signatures: Sequence[Signature], ctx: SbpContext) -> int:
    """Multiplications and additions of a product of two inputs, such as one of matrices or a convolution.

    An op is a product if two inputs may be split together so that the output is a sum over the ranks. Each element of
    the output then takes as many multiplications as the smaller of the two inputs has elements for one place in those
    of its dims that the output has as well.

    Args:
        signatures: What the op's rule gives.
        ctx: Attributes and shapes of the call.

    Returns:
        The operations; 0 where the op is no product, or its rule does not tell.
    """
    for signature in signatures:
        split = [slot for slot, s in signature.inputs.items() if s.kind == "S"]
        if len(split) == 2 and signature.share is None and all(s.kind == "P" for s in signature.outputs.values()):
            terms = min(_contracted(slot, signatures, ctx) for slot in split)
            return 2 * terms * sum(math.prod(ctx.dim(slot)) for slot in list(signature.outputs)[:1])
    return 0


def _contracted(slot: str, signatures: Sequence[Signature], ctx: SbpContext) -> int:
    """Elements of an input for one place in the dims that it shares with the output."""
    shape = ctx.dim(slot)
    kept = {
        s.inputs[slot].dim
        for s in signatures
        if slot in s.inputs and s.inputs[slot].kind == "S" and any(o.kind == "S" for o in s.outputs.values())
    }
    return math.prod([n for d, n in enumerate(shape) if d not in kept])
