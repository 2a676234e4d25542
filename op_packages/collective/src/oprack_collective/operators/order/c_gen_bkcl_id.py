"""Operator of c_gen_bkcl_id."""

from __future__ import annotations

from oprack_collective.operators.order._id import GenIdOp


class CGenBkclIdOp(GenIdOp):
    op_type = "c_gen_bkcl_id"
