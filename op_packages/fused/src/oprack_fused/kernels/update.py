"""Kernels of updates of many parameters at once."""

from __future__ import annotations

from typing import NamedTuple

from oprack.kernel import Array, KernelContext, kernel

from oprack_fused.kernels._steps import BOTH, DTYPES, Steps

_OUTPUTS = ("ParamOut", "Moment1Out", "Moment2Out", "Beta1PowOut", "Beta2PowOut", "MasterParamOut")


class Numbers(NamedTuple):
    """Attributes that adam and adamw share."""

    beta1: float
    beta2: float
    epsilon: float
    multi_precision: bool
    use_global_beta_pow: bool


@kernel("fused_adam", place=BOTH, dtypes=DTYPES)
def fused_adam(
    Params: list[Array],
    Grads: list[Array],
    LearningRate: Array,
    Moments1: list[Array],
    Moments2: list[Array],
    Beta1Pows: list[Array],
    Beta2Pows: list[Array],
    MasterParams: list[Array] | None = None,
    SkipUpdate: Array | None = None,
    *,
    numbers: Numbers,
    weight_decay: float,
    use_adamw: bool,
    ctx: KernelContext,
) -> tuple[list[Array | None], ...]:
    """adam or adamw, for one parameter after the other."""
    step, attrs = Steps(ctx), numbers._asdict()
    if use_adamw:
        attrs |= {"coeff": weight_decay, "with_decay": True}
    state = zip(Params, Grads, Moments1, Moments2, Beta1Pows, Beta2Pows, strict=True)
    found: list[list[Array | None]] = [[] for _ in _OUTPUTS]
    for i, (param, grad, moment1, moment2, beta1_pow, beta2_pow) in enumerate(state):
        one = step.all(
            "adamw" if use_adamw else "adam",
            Param=param,
            Grad=grad,
            LearningRate=LearningRate,
            Moment1=moment1,
            Moment2=moment2,
            Beta1Pow=beta1_pow,
            Beta2Pow=beta2_pow,
            MasterParam=MasterParams[i] if MasterParams else None,
            SkipUpdate=SkipUpdate,
            **attrs,
        )
        for values, slot in zip(found, _OUTPUTS, strict=True):
            values.append(one.get(slot))
    return tuple(found) if MasterParams else tuple(found[:-1])
