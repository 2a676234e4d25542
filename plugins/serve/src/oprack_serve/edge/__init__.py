"""What stands between the server and its clients: a port for probes, and what is known of answers before they are."""
