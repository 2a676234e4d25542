"""Definitions of attention and its softmax."""
