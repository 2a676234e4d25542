"""Op pack: sequences of variable length, recurrent networks, CRF, CTC, Viterbi decoding and beam search."""
