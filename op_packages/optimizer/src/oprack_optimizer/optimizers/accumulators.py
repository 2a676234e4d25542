"""The state variables of a parameter, as an optimizer declares them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Accumulator:
    """A state variable of each parameter, as an optimizer declares it.

    Attributes:
        slot: The input slot of the update op that takes it.
        name: What it is called; the variable is `<parameter>_<name>_<number>`.
        fill: What it starts from.
        shape: Its shape; None: that of the parameter.
        out: The output slot that has its new value; None: slot + "Out"; "": the op does not update it.
    """

    slot: str
    name: str
    fill: float = 0.0
    shape: tuple[int, ...] | None = None
    out: str | None = None


def beta_powers(beta1: float, beta2: float) -> tuple[Accumulator, Accumulator]:
    """State of optimizers that correct their means for starting from 0; the powers start at the betas."""
    return (
        Accumulator("Beta1Pow", "beta1_pow_acc", beta1, (1,)),
        Accumulator("Beta2Pow", "beta2_pow_acc", beta2, (1,)),
    )
