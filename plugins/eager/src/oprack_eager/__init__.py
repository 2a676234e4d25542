"""Hooks of the distribution that brings eager calls."""
