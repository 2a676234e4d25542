"""Ops of a plan that run by one native call, and the call sites that they are made of."""
