"""Hooks of the distribution that brings several ranks."""
