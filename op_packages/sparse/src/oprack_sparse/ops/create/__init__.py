"""Ops that make sparse tensors, and take them apart."""
