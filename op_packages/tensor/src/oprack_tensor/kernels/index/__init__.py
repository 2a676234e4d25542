"""Parts of tensors by place, mask or range, and what is written there."""
