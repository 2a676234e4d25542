"""The code in C, what builds it, and what calls it."""
