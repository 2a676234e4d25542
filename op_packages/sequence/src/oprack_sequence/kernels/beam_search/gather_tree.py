"""Kernels of gather_tree."""

from __future__ import annotations

from oprack.errors import InvalidArgumentError
from oprack.kernel import Array, ArrayModule, KernelContext, kernel


@kernel("gather_tree", place=("cpu", "cuda"), dtypes={"int32", "int64"})
def gather_tree(Ids: Array, Parents: Array, *, ctx: KernelContext, xp: ArrayModule) -> Array:
    """One gather for each step of time."""
    steps, batch, beams = Ids.shape
    if Parents.size and not (0 <= int(Parents.min()) and int(Parents.max()) < beams):
        raise InvalidArgumentError(
            f"op {ctx.op_type}: Parents lie in [{int(Parents.min())}, {int(Parents.max())}]; "
            f"expected from 0 to {beams - 1}"
        )
    out = xp.empty_like(Ids)
    beam = xp.broadcast_to(xp.arange(beams), (batch, beams))
    for t in range(steps - 1, -1, -1):
        out[t] = xp.take_along_axis(Ids[t], beam, axis=1)
        beam = xp.take_along_axis(Parents[t], beam, axis=1)
    return out
