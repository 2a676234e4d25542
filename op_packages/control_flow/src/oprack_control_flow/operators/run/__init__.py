"""The run itself: what it prints and checks, where it may go, what it drops."""
