"""c_gen_xccl_id: its definition; the operator is in the file of this name below operators."""

from __future__ import annotations

from oprack_collective.ops.order._id import GenId


class CGenXcclId(GenId, type="c_gen_xccl_id"):
    """Out names the ranks of a ring by their addresses. In Paddle it is an id of a device's library."""
