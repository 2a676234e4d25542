"""Optimizers as Python classes; each appends its update op for every parameter. Found as `oprack.optimizer.Adam` ...

lr: the schedulers, found as `oprack.optimizer.lr`.
"""

from oprack_optimizer.optimizers import lr

__all__ = ["lr"]
