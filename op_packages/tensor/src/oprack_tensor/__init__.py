"""Ops on tensors: creation, casts, shape, joining and splitting, indexing, slicing, sorting."""
