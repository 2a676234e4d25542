"""Ops of oprack's packs in PyTorch.

`torch.ops.oprack.<op>` is there for every op of every installed pack once this is imported, and `oprack_torch.ops.<op>`
has the same as functions with documentation, called as those of oprack.functional.
"""

from oprack_torch import ops
from oprack_torch.library import torch_op
from oprack_torch.module import Module
from oprack_torch.sequences import Sequences

__all__ = ["Module", "Sequences", "ops", "torch_op"]
