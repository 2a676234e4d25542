"""Functions of tensors that no op of Fluid gives by itself, with Paddle's parameters; names.toml says which are where."""
