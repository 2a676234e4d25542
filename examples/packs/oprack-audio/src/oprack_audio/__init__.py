"""Spectrograms and mel filter banks with gradients, on SciPy's transforms."""
