"""Tensors put together along a dim, and taken apart."""
