"""Blocks that a condition runs or passes over, and what their results are joined by."""
