"""Ops of two sparse tensors, element by element."""
