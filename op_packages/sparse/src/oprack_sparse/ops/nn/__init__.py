"""Ops of networks."""
