"""Functions of tensors that no op gives by itself, with Paddle's parameters; names.toml says which are where."""
