"""Serves models over HTTP by the open inference protocol: the command `oprack serve`."""
