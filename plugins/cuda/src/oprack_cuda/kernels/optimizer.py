"""sgd, momentum, adam and adamw in one pass over the parameter, which also rounds master weights to 16 bits."""

from __future__ import annotations

from oprack.types import FLOATS, HALF_FLOATS
from oprack_optimizer.kernels import adam as plain
from oprack_optimizer.kernels._update import number, scalar, working

from oprack_cuda.kernels._launch import F64, I32, I64, cuda_kernel, dense, launch, sums_dtype

REALS = FLOATS | HALF_FLOATS


class _Step:
    """Operands of an update: `p` the copy that is updated, `grad` in the parameter's dtype, `new` and `rounded`."""

    def __init__(self, Param, Grad, MasterParam, multi_precision, xp, out=None):
        self.xp, self.param = xp, Param
        self.p = dense(xp, working(Param, MasterParam, multi_precision))
        self.has_master = self.p.dtype != Param.dtype
        self.grad = dense(xp, Grad, Param.dtype)
        self.new = xp.empty(self.p.shape, self.p.dtype) if out is None or self.has_master else out
        self.rounded = xp.empty(Param.shape, Param.dtype) if self.has_master else None

    @property
    def served(self):
        """Whether the copy is in the type of the source's sums; a 16-bit parameter without master weights is not."""
        return self.p.dtype == sums_dtype(self.param.dtype)

    def like(self):
        return self.xp.empty(self.p.shape, self.p.dtype)

    def state(self, array):
        return dense(self.xp, array, self.p.dtype)

    def one(self, tensor):
        return dense(self.xp, scalar(tensor, self.p.dtype))

    def run(self, name, *arguments):
        launch(self.xp, "optimizer.cu", name, self.param.dtype, self.p.size, *arguments)

    @property
    def results(self):
        """(ParamOut, MasterParamOut)"""
        return (self.rounded, self.new) if self.has_master else (self.new, None)


@cuda_kernel("sgd", REALS)
def sgd(Param, LearningRate, Grad, MasterParam=None, *, multi_precision, out=None, xp):
    from oprack_optimizer.kernels import sgd as source

    step = _Step(Param, Grad, MasterParam, multi_precision, xp, out)
    if not step.served:
        return source.sgd(Param, LearningRate, Grad, MasterParam, multi_precision=multi_precision, out=out, xp=xp)
    step.run("sgd", step.p, step.grad, step.one(LearningRate), step.new, step.rounded, I64(step.p.size))
    return step.results


@cuda_kernel("momentum", REALS)
def momentum(
    Param,
    Grad,
    Velocity,
    LearningRate,
    MasterParam=None,
    *,
    mu,
    use_nesterov,
    regularization_method,
    regularization_coeff,
    multi_precision,
    rescale_grad,
    xp,
):
    from oprack_optimizer.kernels import momentum as source

    step = _Step(Param, Grad, MasterParam, multi_precision, xp)
    if not step.served:
        rule = {"mu": mu, "use_nesterov": use_nesterov, "rescale_grad": rescale_grad}
        rule |= {"regularization_method": regularization_method, "regularization_coeff": regularization_coeff}
        rule["multi_precision"] = multi_precision
        return source.momentum(Param, Grad, Velocity, LearningRate, MasterParam, **rule)
    velocity, l2 = step.like(), regularization_coeff if regularization_method == "l2_decay" else 0.0
    given = step.p, step.grad, step.state(Velocity), step.one(LearningRate), step.new, velocity, step.rounded
    step.run("momentum", *given, I64(step.p.size), F64(mu), I32(use_nesterov), F64(l2), F64(rescale_grad))
    new, master = step.results
    return new, velocity, master


def _adam(step, rate, moments, powers, rates, use_global, rate_ratio=1.0, decay=0.0):
    m1, m2 = step.like(), step.like()
    given = step.p, step.grad, *map(step.state, moments), step.one(rate), *map(step.one, powers)
    numbers = I64(step.p.size), *map(F64, rates), F64(rate_ratio), F64(decay)
    step.run("adam", *given, step.new, m1, m2, step.rounded, *numbers)
    new, master = step.results
    return new, m1, m2, *plain.powers(*powers, *rates[:2], use_global), master


@cuda_kernel("adam", REALS)
def adam(
    Param,
    Grad,
    LearningRate,
    Moment1,
    Moment2,
    Beta1Pow,
    Beta2Pow,
    MasterParam=None,
    SkipUpdate=None,
    Beta1Tensor=None,
    Beta2Tensor=None,
    EpsilonTensor=None,
    *,
    beta1,
    beta2,
    epsilon,
    multi_precision,
    use_global_beta_pow,
    xp,
):
    step = _Step(Param, Grad, MasterParam, multi_precision, xp)
    given = LearningRate, Moment1, Moment2, Beta1Pow, Beta2Pow, MasterParam, SkipUpdate
    tensors = Beta1Tensor, Beta2Tensor, EpsilonTensor
    if SkipUpdate is not None or not step.served:
        rule = {"beta1": beta1, "beta2": beta2, "epsilon": epsilon, "multi_precision": multi_precision}
        return plain.adam(Param, Grad, *given, *tensors, **rule, use_global_beta_pow=use_global_beta_pow, xp=xp)
    rates = [number(t, v) for t, v in zip(tensors, (beta1, beta2, epsilon), strict=True)]
    return _adam(step, LearningRate, (Moment1, Moment2), (Beta1Pow, Beta2Pow), rates, use_global_beta_pow)


@cuda_kernel("adamw", REALS)
def adamw(
    Param,
    Grad,
    LearningRate,
    Moment1,
    Moment2,
    Beta1Pow,
    Beta2Pow,
    MasterParam=None,
    SkipUpdate=None,
    Beta1Tensor=None,
    Beta2Tensor=None,
    EpsilonTensor=None,
    *,
    beta1,
    beta2,
    epsilon,
    lr_ratio,
    coeff,
    with_decay,
    multi_precision,
    use_global_beta_pow,
    xp,
):
    from oprack_optimizer.kernels import adamw as source

    step = _Step(Param, Grad, MasterParam, multi_precision, xp)
    given = LearningRate, Moment1, Moment2, Beta1Pow, Beta2Pow, MasterParam, SkipUpdate
    tensors = Beta1Tensor, Beta2Tensor, EpsilonTensor
    if SkipUpdate is not None or not step.served:
        rule = {"beta1": beta1, "beta2": beta2, "epsilon": epsilon, "multi_precision": multi_precision}
        rule |= {"lr_ratio": lr_ratio, "coeff": coeff, "with_decay": with_decay}
        return source.adamw(Param, Grad, *given, *tensors, **rule, use_global_beta_pow=use_global_beta_pow, xp=xp)
    rates = [number(t, v) for t, v in zip(tensors, (beta1, beta2, epsilon), strict=True)]
    decay = (lr_ratio, coeff) if with_decay else (1.0, 0.0)
    return _adam(step, LearningRate, (Moment1, Moment2), (Beta1Pow, Beta2Pow), rates, use_global_beta_pow, *decay)
