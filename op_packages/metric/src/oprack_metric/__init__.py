"""Evaluation ops for oprack."""
