"""Dpsgd: op dpsgd."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from oprack_optimizer.optimizers.base import Optimizer

if TYPE_CHECKING:
    from oprack.layers import Parameter


class Dpsgd(Optimizer):
    r"""Differentially private SGD (Abadi et al., 2016): op dpsgd.

    $$w \leftarrow w - lr (g \cdot \min(1, clip / \|g\|) + \mathcal N(0, sigma^2) / batch\_size)$$

    Args:
        learning_rate: A number, or a scheduler of oprack.optimizer.lr.
        clip: The largest norm of a gradient.
        batch_size: Examples in a batch, by which the noise is divided.
        sigma: Standard deviation of the noise.
        seed: Seed of the noise; 0: that of the executor.
    """

    op_type = "dpsgd"

    def __init__(
        self,
        learning_rate: float = 0.001,
        clip: float = 10.0,
        batch_size: float = 16.0,
        sigma: float = 1.0,
        seed: int = 0,
        **options: Any,
    ) -> None:
        super().__init__(learning_rate, **options)
        self.clip, self.batch_size, self.sigma, self.seed = clip, batch_size, sigma, seed

    def attrs(self, parameter: Parameter) -> dict[str, float]:
        return {
            "clip": float(self.clip),
            "batch_size": float(self.batch_size),
            "sigma": float(self.sigma),
            "seed": int(self.seed),
        }
