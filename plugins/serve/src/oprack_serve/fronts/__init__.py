"""Several processes that take requests at one port and send them to the same workers."""
