"""Passes of this library: rewrites of graphs for primitives that do several ops at once."""
