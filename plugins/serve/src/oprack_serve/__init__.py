"""Serves models over HTTP and gRPC by the open inference protocol: the command `oprack serve`."""
