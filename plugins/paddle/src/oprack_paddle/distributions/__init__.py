"""paddle.distribution: random distributions, their transforms and divergences."""
