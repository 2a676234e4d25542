"""Functions of sparse tensors that packs bring: `oprack.sparse.sparse_coo_tensor`, `matmul`, `nn.functional.relu` ...

Sparse tensors are a kind of variable of the core (`oprack.tensor.SparseCooTensor`, `SparseCsrTensor`); what computes
with them comes through the hook oprack_layers.
"""

from __future__ import annotations

from oprack.layers.namespace import core_and_packs

__getattr__, __dir__ = core_and_packs("sparse", {"nn": "oprack.sparse"})
