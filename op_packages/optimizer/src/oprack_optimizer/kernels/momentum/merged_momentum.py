"""Kernel of merged_momentum."""

from __future__ import annotations

from oprack.kernel import Array, kernel

from oprack_optimizer.kernels._update import BOTH, REALS
from oprack_optimizer.kernels.momentum._family import update
from oprack_optimizer.ops._state import MomentumRule, MomentumState


@kernel("merged_momentum", place=BOTH, dtypes=REALS)
def merged_momentum(
    Param: list[Array], Grad: list[Array], states: MomentumState, *, rule: MomentumRule
) -> tuple[list[Array], list[Array], list[Array | None]]:
    found = []
    for i, param in enumerate(Param):
        one = MomentumState(
            states.Velocity[i],
            states.LearningRate[i if len(states.LearningRate) > 1 else 0],
            states.MasterParam[i] if states.MasterParam else None,
        )
        method = rule.regularization_method[i] if rule.regularization_method else ""
        coefficient = rule.regularization_coeff[i] if rule.regularization_coeff else 0.0
        own = rule._replace(regularization_method=method, regularization_coeff=coefficient)
        found.append(update(param, Grad[i], one, own))
    return tuple(list(values) for values in zip(*found, strict=True))
