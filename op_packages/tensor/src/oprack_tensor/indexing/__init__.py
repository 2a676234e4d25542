"""Parts of Variables and tensors: `x[0]`, `x[..., None]`, `x[mask] = 0`."""
