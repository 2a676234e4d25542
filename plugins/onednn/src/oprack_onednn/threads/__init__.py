"""The threads that work for oneDNN, and what signals, forks and the end of the process mean to them."""
