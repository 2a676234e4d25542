"""Order along a dim, the largest, and the different ones."""
