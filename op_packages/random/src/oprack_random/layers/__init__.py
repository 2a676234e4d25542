"""Layers of random tensors. seed 0 takes the executor's: the same seed gives the same numbers on every run."""
