"""Functions of networks with the signatures of Paddle 2, found as `oprack.nn.functional.<name>`."""
