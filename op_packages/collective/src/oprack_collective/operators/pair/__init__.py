"""Operators by which one rank sends arrays of tensors to another."""
