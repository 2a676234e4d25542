"""Programs with global tensors, on several ranks and on one."""
