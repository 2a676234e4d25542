"""Functions of tensors with the signatures of Paddle 2, found as `oprack.<name>` and as methods of tensors."""
