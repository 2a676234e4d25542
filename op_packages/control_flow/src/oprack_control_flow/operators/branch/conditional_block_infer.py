"""Operator of conditional_block_infer."""

from __future__ import annotations

from oprack.runtime import RunContext
from oprack.runtime.run_block import run_steps
from oprack.tensor import Scope

from oprack_control_flow.operators.branch._conditional import ConditionalOperator


class ConditionalBlockInferOp(ConditionalOperator):
    """The block's scope lives as long as its run."""

    op_type = "conditional_block_infer"

    def run_impl(self, scope: Scope, run: RunContext) -> None:
        if self.runs(scope):
            self.run_freely(scope, run)

    def run_freely(self, scope: Scope, run: RunContext) -> None:
        """Run the block in a scope that is dropped; its values die after their last use."""
        block = run.program.block(self.attrs["sub_block"])
        inner = scope.new_scope()
        try:
            block.create_variables(inner)
            run_steps(run, block, inner, ())
        finally:
            scope.delete_scope(inner)
