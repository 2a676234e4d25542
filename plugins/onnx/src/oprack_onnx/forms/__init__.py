"""What the table can't say: how an op is written, where that depends on its attributes, its inputs or the opset."""
