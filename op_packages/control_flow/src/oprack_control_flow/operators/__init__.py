"""Operators that run themselves over a Scope: they run sub-blocks, or hold values that are no tensors."""
