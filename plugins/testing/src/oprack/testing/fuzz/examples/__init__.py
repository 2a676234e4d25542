"""What is run: generated programs of one op or a net, with their values, and the strategies that draw them."""
