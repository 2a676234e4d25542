"""Functions of tensors that no op gives by itself, with the parameters that Paddle's have."""
