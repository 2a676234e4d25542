"""The same elements again: in memory of their own, as another dtype, side by side."""
