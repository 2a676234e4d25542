"""Functions of this pack under Paddle 2's names, found as oprack.nn.functional.<name>."""
