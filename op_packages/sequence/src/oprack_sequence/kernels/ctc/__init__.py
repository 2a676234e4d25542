"""Labels without alignment: the loss, the labels of a path, and how far labels are apart."""
