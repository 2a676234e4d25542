"""Decoding, and reductions over runs whose number is known only from the values, on the host."""

from __future__ import annotations

from oprack_sequence.kernels.beam_search import beam_search
from oprack_sequence.kernels.beam_search_decode import beam_search_decode
from oprack_sequence.kernels.ctc_align import ctc_align
from oprack_sequence.kernels.edit_distance import edit_distance
from oprack_sequence.kernels.segment_pool import segment_pool, segment_pool_grad

from oprack_cuda.host_kernel import kernels_on_host

_DECODING = beam_search, beam_search_decode, ctc_align, edit_distance
globals().update(kernels_on_host(__name__, *_DECODING, segment_pool, segment_pool_grad))
