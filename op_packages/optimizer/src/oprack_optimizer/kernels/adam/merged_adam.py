"""Kernel of merged_adam."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, kernel

from oprack_optimizer.kernels._update import BOTH, REALS
from oprack_optimizer.kernels.adam._family import update
from oprack_optimizer.ops._state import AdamRule, AdamState


@kernel("merged_adam", place=BOTH, dtypes=REALS)
def merged_adam(
    Param: list[Array], Grad: list[Array], states: AdamState, *, rule: AdamRule, xp: ArrayModule
) -> tuple[list[Array], list[Array], list[Array], list[Array], list[Array], list[Array | None]]:
    found = []
    for i, param in enumerate(Param):
        one = AdamState(
            states.LearningRate[i if len(states.LearningRate) > 1 else 0],
            states.Moment1[i],
            states.Moment2[i],
            states.Beta1Pow[i],
            states.Beta2Pow[i],
            states.MasterParam[i] if states.MasterParam else None,
        )
        found.append(update(param, Grad[i], one, rule, xp))
    return tuple(list(values) for values in zip(*found, strict=True))
