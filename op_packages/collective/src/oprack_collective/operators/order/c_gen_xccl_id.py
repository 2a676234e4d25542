"""Operator of c_gen_xccl_id."""

from __future__ import annotations

from oprack_collective.operators.order._id import GenIdOp


class CGenXcclIdOp(GenIdOp):
    op_type = "c_gen_xccl_id"
