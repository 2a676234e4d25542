"""A kernel by jax."""
