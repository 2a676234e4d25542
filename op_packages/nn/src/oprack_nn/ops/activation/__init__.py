"""Definitions of activations."""
