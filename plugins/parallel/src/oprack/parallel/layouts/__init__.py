"""Layouts of global tensors, boxing from one layout to another, and the choice of those that an op computes in."""
