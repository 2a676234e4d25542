"""The kernel of digamma: a function of torch, on the arrays' own memory."""

from __future__ import annotations

import importlib.util

from oprack.kernel import Array, Predicate, kernel
from oprack.types import FLOATS

INSTALLED = Predicate(lambda query: importlib.util.find_spec("torch") is not None, "torch is installed")


@kernel("digamma", library="torch", dtypes=FLOATS, priority=4, when=INSTALLED)
def digamma(X: Array) -> Array:
    import torch

    return torch.special.digamma(torch.from_numpy(X)).numpy()
