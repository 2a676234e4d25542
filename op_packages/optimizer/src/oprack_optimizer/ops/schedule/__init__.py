"""Definitions of ops that say how a training goes on: learning rates."""
