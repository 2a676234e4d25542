"""Control flow: loops, branches, tensor arrays, StaticRNN, rank tables."""
