"""The eager Tensor, and the graph of recorded calls; nothing here runs an op or knows a rank.

Who hands tensors to users imports `oprack.functional.tensor`, which installs the methods that call ops.
"""

from oprack.eager_tensor.tensor import (
    Edge,
    Leaf,
    Node,
    Tensor,
    TensorType,
    lend,
    lend_without_gradient,
    new_tensor,
    share_memory,
    split_edge,
)

__all__ = [
    "Edge",
    "Leaf",
    "Node",
    "Tensor",
    "TensorType",
    "lend",
    "lend_without_gradient",
    "new_tensor",
    "share_memory",
    "split_edge",
]
