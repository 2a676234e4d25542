"""paddle.static: programs written by hand, and what runs them."""
