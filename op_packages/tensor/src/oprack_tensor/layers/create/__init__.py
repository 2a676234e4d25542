"""Tensors made from a shape, a range or values of the program."""
