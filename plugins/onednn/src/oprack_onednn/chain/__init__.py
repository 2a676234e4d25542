"""Primitives that run one after the other, with what each Python thread has for them."""
