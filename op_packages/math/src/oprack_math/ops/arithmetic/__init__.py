"""Definitions of arithmetic with one tensor, and of sums of several."""
