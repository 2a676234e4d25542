"""Entry point of the pack: hook implementations only."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oprack import hookimpl

if TYPE_CHECKING:
    from oprack.packs import Register


@hookimpl
def oprack_ops(register: Register) -> None:
    """Every op of this pack, by the strings in ops.toml."""
    register.manifest(__package__)


@hookimpl
def oprack_layers(register: Register) -> None:
    """`oprack.optimizer.Adam` and the others, also under Fluid's names such as AdamOptimizer, and the schedulers."""
    here = f"{__package__}.optimizers"
    for module, *names in (
        ("adadelta", "Adadelta"),
        ("adagrad", "Adagrad", "DecayedAdagrad"),
        ("adam", "Adam"),
        ("adamax", "Adamax"),
        ("adamw", "AdamW"),
        ("dpsgd", "Dpsgd"),
        ("ftrl", "Ftrl"),
        ("lamb", "Lamb"),
        ("lars_momentum", "LarsMomentum"),
        ("lbfgs", "LBFGS"),
        ("momentum", "Momentum"),
        ("rmsprop", "RMSProp"),
        ("sgd", "SGD"),
        ("written_out", "NAdam", "RAdam"),
    ):
        for name in names:
            register.layer(name, f"{here}.{module}:{name}", namespace="optimizer")
            register.layer(f"{name}Optimizer", f"{here}.{module}:{name}", namespace="optimizer")
    register.layer("Optimizer", f"{here}.base:Optimizer", namespace="optimizer")
    register.layer("RecomputeOptimizer", f"{here}.recompute:RecomputeOptimizer", namespace="optimizer")
    register.layer("Accumulator", f"{here}.base:Accumulator", namespace="optimizer")
    register.layer("lr", f"{here}:lr", namespace="optimizer")
    for how in ("Value", "Norm", "GlobalNorm"):
        clips = (f"ClipGradBy{how}", f"GradientClipBy{how}")
        register.layers(f"{__package__}.clip", *clips, namespace="optimizer")
    register.layers(f"{__package__}.clip", "GradientClip", namespace="optimizer")
    decays = ("L1Decay", "L1DecayRegularizer", "L2Decay", "L2DecayRegularizer", "WeightDecay", "append_regularization")
    register.layers(f"{__package__}.regularizer", *decays, namespace="optimizer")
