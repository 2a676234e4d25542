"""Ranks that meet at an address: a Communicator over TCP for processes that no mpiexec started."""
