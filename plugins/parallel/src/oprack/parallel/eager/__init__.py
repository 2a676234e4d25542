"""Global tensors, and calls with them."""
