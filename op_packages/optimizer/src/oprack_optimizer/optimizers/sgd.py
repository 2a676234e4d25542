"""SGD: op sgd, also for SelectedRows gradients."""

from __future__ import annotations

from oprack_optimizer.optimizers.base import Optimizer


class SGD(Optimizer):
    r"""Gradient descent, $$w \leftarrow w - lr \cdot g$$: op sgd. A SelectedRows gradient changes its rows only."""

    op_type = "sgd"
