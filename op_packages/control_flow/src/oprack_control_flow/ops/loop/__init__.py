"""Blocks that run again and again."""
