"""Attributes that collective ops share."""

from __future__ import annotations

from oprack.op import Attr

RING_ID = Attr(0, "The ring: 0 is all ranks, others are what c_comm_init opened.")
USE_CALC_STREAM = Attr(
    False, "Paddle: run on the stream of computation. Here every collective ends before the next op."
)
ON_CALC_STREAM = Attr(True, "Paddle: run on the stream of computation. Here every collective ends before the next op.")
MODEL_PARALLEL = Attr(False, "Paddle: the op belongs to tensor parallelism.")
OF_MODEL_PARALLEL = Attr(True, "Paddle: the op belongs to tensor parallelism.")
