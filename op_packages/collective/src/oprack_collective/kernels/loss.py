"""Kernels of ops for losses of classes that ranks share."""

from __future__ import annotations

from oprack.errors import InvalidArgumentError
from oprack.kernel import Array, ArrayModule, kernel

from oprack_collective.kernels._ring import PLACES, REALS, require_ranks, ring


def _own(label: Array, rank: int, classes: int, ignore_index: int, xp: ArrayModule) -> tuple[Array, Array]:
    """Indices among this rank's classes, and which of them are such and count."""
    index = label.astype("int64") - rank * classes
    own = (index >= 0) & (index < classes) & (label != ignore_index)
    return xp.where(own, index, 0), own


@kernel("c_softmax_with_cross_entropy", place=PLACES, dtypes=REALS)
def c_softmax_with_cross_entropy(
    Logits: Array, Label: Array, *, ignore_index: int, ring_id: int, rank: int, nranks: int, xp: ArrayModule
) -> tuple[Array, Array]:
    group, classes = ring(ring_id), Logits.shape[-1]
    require_ranks("c_softmax_with_cross_entropy", group, nranks)
    wrong = ((Label < 0) | (Label >= classes * nranks)) & (Label != ignore_index)
    if wrong.any():
        raise InvalidArgumentError(
            f"op c_softmax_with_cross_entropy: Label holds {int(Label[wrong][0])}; expected 0 to "
            f"{classes * nranks - 1}, {classes} classes on each of {nranks} ranks, or ignore_index {ignore_index}"
        )
    top = group.all_reduce(xp.ascontiguousarray(Logits.max(axis=-1, keepdims=True)), "max")
    scores = Logits - top
    p = xp.exp(scores)
    index, own = _own(Label, rank, classes, ignore_index, xp)
    picked = xp.where(own, xp.take_along_axis(scores, index, axis=-1), scores.dtype.type(0))
    # One message for both: the sum of the exponentials, and the score of the label, which one rank has.
    sums = group.all_reduce(xp.stack([p.sum(axis=-1, keepdims=True), picked]))
    loss = xp.where(Label == ignore_index, scores.dtype.type(0), xp.log(sums[0]) - sums[1])
    p /= sums[0]
    return p, loss


@kernel("c_softmax_with_cross_entropy_grad", place=PLACES, dtypes=REALS)
def c_softmax_with_cross_entropy_grad(
    Softmax: Array,
    Label: Array,
    Loss_grad: Array,
    Softmax_grad: Array | None = None,
    *,
    ignore_index: int,
    ring_id: int,
    rank: int,
    xp: ArrayModule,
) -> Array:
    index, own = _own(Label, rank, Softmax.shape[-1], ignore_index, xp)
    found = Softmax.copy()
    picked = xp.take_along_axis(found, index, axis=-1)
    xp.put_along_axis(found, index, picked - own.astype(found.dtype), axis=-1)
    found *= xp.where(Label == ignore_index, found.dtype.type(0), Loss_grad)
    if Softmax_grad is not None:
        inner = ring(ring_id).all_reduce((Softmax_grad * Softmax).sum(axis=-1, keepdims=True))
        found += Softmax * (Softmax_grad - inner)
    return found
