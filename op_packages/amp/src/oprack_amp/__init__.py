"""Ops of mixed-precision training for oprack."""
