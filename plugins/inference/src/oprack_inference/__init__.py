"""Hooks of the distribution that brings predictors."""
