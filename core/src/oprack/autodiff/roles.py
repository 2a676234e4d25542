"""op_role: what an op of a training program is for; bit values as in Fluid."""

from __future__ import annotations

from enum import IntFlag


class OpRole(IntFlag):
    """Value of the attribute op_role."""

    FORWARD = 0
    BACKWARD = 1
    OPTIMIZE = 2
    RPC = 4
    DIST = 8
    LR_SCHED = 16
    LOSS = 256
