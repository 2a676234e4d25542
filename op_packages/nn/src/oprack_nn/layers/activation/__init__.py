"""Layers of activations."""
