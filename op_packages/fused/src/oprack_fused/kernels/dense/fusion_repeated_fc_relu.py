"""Kernel of fusion_repeated_fc_relu."""

from __future__ import annotations

from oprack.kernel import Array, KernelContext, kernel

from oprack_fused.kernels._steps import BOTH, DTYPES, Steps


@kernel("fusion_repeated_fc_relu", place=BOTH, dtypes=DTYPES)
def fusion_repeated_fc_relu(
    X: Array, W: list[Array], Bias: list[Array], *, ctx: KernelContext
) -> tuple[list[Array], Array]:
    """fc with relu, again and again."""
    found = [X]
    for weight, bias in zip(W, Bias, strict=True):
        found.append(Steps(ctx).dense(found[-1], weight, bias, "relu"))
    return found[1:-1], found[-1]
