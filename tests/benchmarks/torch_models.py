"""Workloads that are written for PyTorch by hand."""

from __future__ import annotations

import torch


class TinyOps(torch.nn.Module):
    """The chain of make_models.py: scale, relu, add of itself, in turns."""

    def __init__(self, count: int) -> None:
        super().__init__()
        self._count = count

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for i in range(self._count):
            kind = i % 3
            if kind == 0:
                x = x * 0.5
            elif kind == 1:
                x = torch.relu(x)
            else:
                x = x + x
        return x


def build(name: str) -> torch.nn.Module:
    """The model of a workload."""
    return TinyOps(int(name.split()[0])).eval()
