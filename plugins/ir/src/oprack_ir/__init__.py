"""Hooks of the distribution that brings graphs and passes."""
