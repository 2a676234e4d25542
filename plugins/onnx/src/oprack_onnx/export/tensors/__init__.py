"""How ops on tensors are written."""
