"""sgd, momentum, adam and adamw in one pass over the parameter, which also rounds master weights to 16 bits."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, decline
from oprack.types import FLOATS, HALF_FLOATS
from oprack_optimizer.kernels._update import scalar, working
from oprack_optimizer.kernels.adam import powers, rates_of
from oprack_optimizer.ops._state import AdamRule, AdamState, MomentumRule, MomentumState

from oprack_cuda.kernels._launch import F64, I32, I64, cuda_kernel, dense, launch, sums_dtype
from oprack_cuda.raw import Argument

REALS = FLOATS | HALF_FLOATS


class _Step:
    """Operands of an update: `p` the copy that is updated, `grad` in the parameter's dtype, `new` and `rounded`."""

    def __init__(
        self,
        Param: Array,
        Grad: Array,
        MasterParam: Array | None,
        multi_precision: bool,
        xp: ArrayModule,
        out: Array | None = None,
    ) -> None:
        self.xp, self.param = xp, Param
        self.p = dense(xp, working(Param, MasterParam, multi_precision))
        self.has_master = self.p.dtype != Param.dtype
        self.grad = dense(xp, Grad, Param.dtype)
        self.new = xp.empty(self.p.shape, self.p.dtype) if out is None or self.has_master else out
        self.rounded = xp.empty(Param.shape, Param.dtype) if self.has_master else None

    @property
    def served(self) -> bool:
        """Whether the copy is in the type of the source's sums; a 16-bit parameter without master weights is not."""
        return self.p.dtype == sums_dtype(self.param.dtype)

    def like(self) -> Array:
        return self.xp.empty(self.p.shape, self.p.dtype)

    def state(self, array: Array) -> Array:
        return dense(self.xp, array, self.p.dtype)

    def one(self, tensor: Array) -> Array:
        return dense(self.xp, scalar(tensor, self.p.dtype))

    def run(self, name: str, *arguments: Argument) -> None:
        launch(self.xp, "optimizer.cu", name, self.param.dtype, self.p.size, *arguments)

    @property
    def results(self) -> tuple[Array, Array | None]:
        """(ParamOut, MasterParamOut)"""
        return (self.new, None) if self.rounded is None else (self.rounded, self.new)


_UNSERVED = "a 16-bit parameter without master weights"


@cuda_kernel("sgd", REALS, may_decline=True)
def sgd(
    Param: Array,
    LearningRate: Array,
    Grad: Array,
    MasterParam: Array | None = None,
    *,
    multi_precision: bool,
    out: Array | None = None,
    xp: ArrayModule,
) -> tuple[Array, Array | None]:
    step = _Step(Param, Grad, MasterParam, multi_precision, xp, out)
    if not step.served:
        return decline(_UNSERVED)
    step.run("sgd", step.p, step.grad, step.one(LearningRate), step.new, step.rounded, I64(step.p.size))
    return step.results


@cuda_kernel("momentum", REALS, may_decline=True)
def momentum(
    Param: Array, Grad: Array, state: MomentumState, *, rule: MomentumRule, xp: ArrayModule
) -> tuple[Array, Array, Array | None]:
    step = _Step(Param, Grad, state.MasterParam, rule.multi_precision, xp)
    if not step.served:
        return decline(_UNSERVED)
    velocity, l2 = step.like(), rule.regularization_coeff if rule.regularization_method == "l2_decay" else 0.0
    given = step.p, step.grad, step.state(state.Velocity), step.one(state.LearningRate)
    numbers = I64(step.p.size), F64(rule.mu), I32(rule.use_nesterov), F64(l2), F64(rule.rescale_grad)
    step.run("momentum", *given, step.new, velocity, step.rounded, *numbers)
    new, master = step.results
    return new, velocity, master


def _adam(
    param: Array,
    grad: Array,
    state: AdamState,
    rule: AdamRule,
    xp: ArrayModule,
    rate_ratio: float = 1.0,
    decay: float = 0.0,
) -> tuple[Array | None, ...]:
    if state.SkipUpdate is not None:
        return decline("SkipUpdate is given")
    step = _Step(param, grad, state.MasterParam, rule.multi_precision, xp)
    if not step.served:
        return decline(_UNSERVED)
    rates, m1, m2 = rates_of(state, rule), step.like(), step.like()
    moments = step.state(state.Moment1), step.state(state.Moment2)
    scalars = [step.one(a) for a in (state.LearningRate, state.Beta1Pow, state.Beta2Pow)]
    numbers = I64(step.p.size), *map(F64, rates), F64(rate_ratio), F64(decay)
    step.run("adam", step.p, step.grad, *moments, *scalars, step.new, m1, m2, step.rounded, *numbers)
    new, master = step.results
    return new, m1, m2, *powers(state, rates, rule), master


@cuda_kernel("adam", REALS, may_decline=True)
def adam(Param: Array, Grad: Array, state: AdamState, *, rule: AdamRule, xp: ArrayModule) -> tuple[Array | None, ...]:
    return _adam(Param, Grad, state, rule, xp)


@cuda_kernel("adamw", REALS, may_decline=True)
def adamw(
    Param: Array,
    Grad: Array,
    state: AdamState,
    *,
    rule: AdamRule,
    lr_ratio: float,
    coeff: float,
    with_decay: bool,
    xp: ArrayModule,
) -> tuple[Array | None, ...]:
    return _adam(Param, Grad, state, rule, xp, *((lr_ratio, coeff) if with_decay else ()))
