"""Paddle's collective ops."""
