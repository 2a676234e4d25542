"""Ops that Paddle's passes for oneDNN make of plain ones."""
