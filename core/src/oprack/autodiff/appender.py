"""Appends the ops of training to a program, each with its op_role."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import IntFlag
from typing import Any

from oprack.desc import BlockDesc, OpDesc
from oprack.op.desc_rules import infer_op
from oprack.packs.manager import PackManager, default_manager
from oprack.types import AttrType


class OpRole(IntFlag):
    """Value of the attribute op_role."""

    FORWARD = 0
    BACKWARD = 1
    OPTIMIZE = 2
    RPC = 4
    DIST = 8
    LR_SCHED = 16
    LOSS = 256


class OpAppender:
    """Appends ops to `block` with one role and name scope; variables are passed and returned as names.

    Args:
        block: The block.
        role: The op_role of the ops.
        scope: Their op_namescope.
        manager: The packs; default: those of the process.
    """

    def __init__(
        self, block: BlockDesc, *, role: OpRole = OpRole.OPTIMIZE, scope: str = "/", manager: PackManager | None = None
    ) -> None:
        self.block, self.role, self.scope = block, role, scope
        self.manager = manager or default_manager()

    def append(
        self,
        type: str,
        inputs: Mapping[str, Sequence[str]],
        outputs: Mapping[str, Sequence[str]],
        attrs: Mapping[str, Any] | None = None,
        pair: Sequence[str] = (),
    ) -> OpDesc:
        """Append an op and infer its outputs.

        Args:
            type: The op.
            inputs: Names of variables by input slot.
            outputs: Names of variables by output slot; those that do not exist are created.
            attrs: Attributes that differ from their defaults.
            pair: The (parameter, gradient) that the op belongs to, for op_role_var.
        """
        info = self.manager.op_info(type)
        op = OpDesc(type, inputs, outputs)
        for name, value in (attrs or {}).items():
            op.set_attr(name, value, info.proto.attrs[name].type)
        op.set_attr("op_role", int(self.role), AttrType.INT)
        op.set_attr("op_role_var", list(pair), AttrType.STRINGS)
        op.set_attr("op_namescope", self.scope, AttrType.STRING)
        for names in outputs.values():
            for name in names:
                if self.block.find_var_recursive(name) is None:
                    self.block.create_var(name)
        infer_op(op, self.block, info)
        return self.block.append_op(op)

    def apply(
        self,
        type: str,
        inputs: Mapping[str, Sequence[str]],
        attrs: Mapping[str, Any] | None = None,
        *,
        name: str,
        pair: Sequence[str] = (),
    ) -> str:
        """Append an op whose output Out is a new variable named as `new_name` does; returns the variable's name."""
        out = self.new_name(name)
        self.append(type, inputs, {"Out": [out]}, attrs, pair)
        return out

    def new_name(self, name: str) -> str:
        """`name`, with a number appended if the block or a parent already has a variable of that name."""
        candidate, n = name, 0
        while self.block.find_var_recursive(candidate) is not None:
            n += 1
            candidate = f"{name}_{n}"
        return candidate
