"""Windows over the rows of a sequence, and rows out of the windows of an image."""
