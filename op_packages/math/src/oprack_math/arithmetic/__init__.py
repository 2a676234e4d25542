"""Python's operators of Variables and tensors: `x + 1`, `x < y`, `~x`."""
