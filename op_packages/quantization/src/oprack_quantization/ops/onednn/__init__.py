"""Steps into and out of quantised numbers that Paddle's passes for oneDNN put in."""
