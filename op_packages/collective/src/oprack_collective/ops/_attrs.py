"""Attributes that collective ops share."""

from __future__ import annotations

from oprack.op import Attr
from oprack.types import AttrType

RING_ID = Attr(0, "The ring: 0 is all ranks, others are what c_comm_init opened.")
USE_CALC_STREAM = Attr(
    False, "Paddle: run on the stream of computation. Here every collective ends before the next op."
)
ON_CALC_STREAM = Attr(True, "Paddle: run on the stream of computation. Here every collective ends before the next op.")
MODEL_PARALLEL = Attr(False, "Paddle: the op belongs to tensor parallelism.")
OF_MODEL_PARALLEL = Attr(True, "Paddle: the op belongs to tensor parallelism.")
REDUCE_TYPE = Attr(0, "0: sum, 1: maximum, 2: minimum, 3: product.").between(0, 3)
PEER = Attr(0, "The other rank in the ring.").at_least(0)
DYNAMIC_SHAPE = Attr(False, "The shape is sent before the tensor.")
DTYPE = Attr(5, "dtype of what comes, as Paddle numbers it.")
OUT_SHAPE = Attr([], "Shape of what comes.", type=AttrType.INTS)
