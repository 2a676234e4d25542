"""Ops that this library's passes put into programs: a convolution or product with what follows it."""
