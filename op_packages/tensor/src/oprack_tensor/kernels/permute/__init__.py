"""The same elements in another order."""
