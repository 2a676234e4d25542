"""Kernel of lars_momentum."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, kernel

from oprack_optimizer.kernels._update import BOTH, REALS, rounded, scalar, working


def _step(
    p: Array,
    grad: Array,
    velocity: Array,
    lr: Array,
    mu: float,
    coefficient: float,
    decay: float,
    epsilon: float,
    rescale: float,
    xp: ArrayModule,
) -> tuple[Array, Array]:
    """(parameter, velocity) after one step."""
    kind = p.dtype.type
    g = grad.astype(p.dtype, copy=False) * kind(rescale)
    p_norm, g_norm = xp.sqrt((p * p).sum()), xp.sqrt((g * g).sum())
    if decay > 0:
        adapted = lr * kind(coefficient) * p_norm / (g_norm + kind(decay) * p_norm + kind(epsilon))
        lr = xp.where((p_norm > 0) & (g_norm > 0), adapted, lr)
    v = velocity * kind(mu) + lr * (g + kind(decay) * p)
    return p - v, v


@kernel("lars_momentum", place=BOTH, dtypes=REALS)
def lars_momentum(
    Param: list[Array],
    Grad: list[Array],
    Velocity: list[Array],
    LearningRate: list[Array],
    MasterParam: list[Array],
    *,
    mu: float,
    lars_coeff: float,
    lars_weight_decay: list[float],
    epsilon: float,
    multi_precision: bool,
    rescale_grad: float,
    xp: ArrayModule,
) -> tuple[list[Array], list[Array], list[Array | None]]:
    params, velocities, masters = [], [], []
    for i, param in enumerate(Param):
        master = MasterParam[i] if MasterParam else None
        p = working(param, master, multi_precision)
        lr = scalar(LearningRate[i if len(LearningRate) > 1 else 0], p.dtype)
        decay = lars_weight_decay[i if len(lars_weight_decay) > 1 else 0]
        new, v = _step(p, Grad[i], Velocity[i], lr, mu, lars_coeff, decay, epsilon, rescale_grad, xp)
        out, master = rounded(new, param, master, multi_precision)
        params.append(out)
        velocities.append(v)
        masters.append(master)
    return params, velocities, masters
