"""Pooled sequences side by side, as steps."""

from __future__ import annotations

from collections.abc import Callable

from oprack.errors import InvalidLoDError
from oprack.kernel import Array, KernelContext
from oprack.tensor import LoDTensor

from oprack_fused.kernels._steps import Steps


def pooled(
    X: list[Array], pooltype: str, ctx: KernelContext, after: Callable[[Array], Array] = lambda x: x
) -> LoDTensor:
    """sequence_pool of each X, what `after` makes of it, and concat.

    Raises:
        InvalidLoDError: The tensors of X differ in the number of their sequences.
    """
    step, lods = Steps(ctx), [ctx.lod("X", i) for i in range(len(X))]
    counts = [len(lod[-1]) - 1 for lod in lods]
    if len(set(counts)) > 1:
        raise InvalidLoDError(f"op {ctx.op_type}: the tensors of X have {counts} sequences; expected as many in each")
    pools = [
        after(step("sequence_pool", X=x, pooltype=pooltype, is_test=True, lods={"X": lod[-1:]}))
        for x, lod in zip(X, lods, strict=True)
    ]
    return LoDTensor(step("concat", X=pools, axis=1), [list(range(counts[0] + 1))])
