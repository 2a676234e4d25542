"""Chains of primitives: what they compute, the memory that they use, and the state of each Python thread for them."""
