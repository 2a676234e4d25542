"""Definitions of ops for losses of classes that ranks share."""
