"""Functions of sparse tensors with the names of paddle.sparse: found as `oprack.sparse.<name>`."""
