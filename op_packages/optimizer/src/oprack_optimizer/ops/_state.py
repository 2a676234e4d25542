"""Parameter groups of update kernels: the state of a family of ops, and the attributes of its rule.

Each field is the input slot or the attribute of its name. A field that an op of the family lacks has its default.
"""

from __future__ import annotations

from typing import Any, NamedTuple


class AdamState(NamedTuple):
    """Inputs of adam, adamw, lamb and merged_adam, besides the parameter and its gradient."""

    LearningRate: Any
    Moment1: Any
    Moment2: Any
    Beta1Pow: Any
    Beta2Pow: Any
    MasterParam: Any = None
    SkipUpdate: Any = None
    Beta1Tensor: Any = None
    Beta2Tensor: Any = None
    EpsilonTensor: Any = None


class AdamRule(NamedTuple):
    """Attributes of those ops."""

    beta1: float
    beta2: float
    epsilon: float
    multi_precision: bool
    use_global_beta_pow: bool = False


class MomentumState(NamedTuple):
    """Inputs of momentum, merged_momentum and sparse_momentum, besides the parameter and its gradient."""

    Velocity: Any
    LearningRate: Any
    MasterParam: Any = None


class MomentumRule(NamedTuple):
    """Attributes of those ops; merged_momentum has a list of regularizations."""

    mu: float
    use_nesterov: bool
    regularization_method: Any
    regularization_coeff: Any
    multi_precision: bool
    rescale_grad: float
