"""What other systems hear of each request."""
