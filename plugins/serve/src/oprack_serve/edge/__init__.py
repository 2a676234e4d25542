"""What stands between the server and all who can reach it: a port for probes, and answers that are too large to make."""
