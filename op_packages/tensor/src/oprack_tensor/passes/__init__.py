"""Passes of the pack: rewrites of graphs that run before a program does."""
