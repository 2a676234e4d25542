"""Search for the best sentences: one step, and the way back."""
