"""Kernels of matrix_power and of its gradient."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, kernel

from oprack_linalg.kernels._matrices import BOTH, REAL_AND_COMPLEX, adjoint, singular


@kernel("matrix_power", place=BOTH, dtypes=REAL_AND_COMPLEX)
def matrix_power(X: Array, *, n: int, xp: ArrayModule) -> Array:
    """By repeated squaring."""
    with singular("matrix_power", "X"):
        out = xp.linalg.matrix_power(X, n)
    # the first power is X itself
    return out.copy() if n == 1 else out


@kernel("matrix_power_grad", place=BOTH, dtypes=REAL_AND_COMPLEX)
def matrix_power_grad(X: Array, Out_grad: Array, *, n: int, xp: ArrayModule) -> Array:
    """The sum over all positions of the factor, by repeated doubling.

    With T = base^H and G = Out@GRAD, S(m) = sum of T^i G T^(m-1-i) for i below m, and S(a + b) = S(a) T^b + T^a S(b).
    """
    if n == 0:
        return xp.zeros_like(X)
    base = X
    if n < 0:
        with singular("matrix_power_grad", "X"):
            base = xp.linalg.inv(X)
    turned = power = adjoint(base)
    part, left, done = Out_grad, abs(n), None
    while True:
        if left & 1:
            done = (power, part) if done is None else (done[0] @ power, done[1] @ power + done[0] @ part)
        left >>= 1
        if not left:
            break
        part, power = part @ power + power @ part, power @ power
    assert done is not None  # |n| is above 0, so one of its bits is set
    total = done[1]
    return -(turned @ total @ turned) if n < 0 else total.copy() if total is Out_grad else total
