"""Definitions of ops for sums and other reductions over ranks."""
