"""paddle.Model: the trainer, and its callbacks."""
