"""Conditional random fields: the loss, and the best path."""
