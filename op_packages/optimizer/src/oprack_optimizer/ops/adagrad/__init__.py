"""Definitions of rules with a rate for each element, by the squares of its gradients."""
