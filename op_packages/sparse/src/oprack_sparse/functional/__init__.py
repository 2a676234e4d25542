"""Functions of tensors beside the ops: found as methods of Tensor."""
