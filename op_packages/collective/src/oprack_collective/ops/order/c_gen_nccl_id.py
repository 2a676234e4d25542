"""c_gen_nccl_id: its definition; the operator is in the file of this name below operators."""

from __future__ import annotations

from oprack_collective.ops.order._id import GenId


class CGenNcclId(GenId, type="c_gen_nccl_id"):
    """Out names the ranks of a ring by their addresses. In Paddle it is an id of NCCL."""
