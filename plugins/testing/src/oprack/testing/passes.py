"""Checks of passes: a program is run as it is and as the passes leave it, and both give the same."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from oprack.ir import Optimized, find_pass, optimize
from oprack.op.desc_rules import infer_op
from oprack.packs.manager import PackManager, default_manager
from oprack.program import Program
from oprack.runtime import Executor
from oprack.tensor import LoDTensor, Scope


@dataclass
class PassCase:
    """A program in a few lines.

    Attributes:
        feeds: Name -> array; its first dim is left open (-1) in the program.
        params: Name -> array.
        ops: (type, inputs, outputs, attributes) for each op.
        fetch: What is compared; []: what the last op writes first.
        checked: Whether the program asks for the other sizes of what is fed to be checked; passes rely on no size that
            is not.
    """

    feeds: Mapping[str, Any]
    params: Mapping[str, Any]
    ops: Sequence[tuple[Any, ...]]
    fetch: Sequence[str] = field(default_factory=list)
    checked: bool = True

    def build(self, manager: PackManager | None = None) -> tuple[Program, Scope]:
        """The program with inferred shapes, and a scope with its parameters."""
        manager = manager or default_manager()
        program, scope = Program(), Scope()
        block = program.global_block()
        for name, value in self.feeds.items():
            tensor = value if isinstance(value, LoDTensor) else LoDTensor(np.asarray(value))
            dims = [-1, *tensor.shape[1:]] if tensor.shape else []
            block.create_var(
                name, dtype=tensor.dtype, shape=dims, lod_level=len(tensor.lod), need_check_feed=self.checked
            )
        for name, value in self.params.items():
            array = np.asarray(value)
            block.create_var(name, dtype=array.dtype.name, shape=array.shape, persistable=True)
            scope.var(name).set(array)
        for op_type, inputs, outputs, *attrs in self.ops:
            for names in outputs.values():
                for name in [names] if isinstance(names, str) else names:
                    if not block.has_var(name):
                        block.create_var(name)
            op = block.append_op(op_type, inputs, outputs, attrs[0] if attrs else {})
            infer_op(op, block, manager.op_info(op_type))
        return program, scope

    def fetches(self) -> list[str]:
        """The names to compare."""
        if self.fetch:
            return list(self.fetch)
        last = next(iter(self.ops[-1][2].values()))
        return [last] if isinstance(last, str) else [last[0]]


def check_passes(
    case: PassCase, *names: str, rtol: float = 0.0, atol: float = 0.0, manager: PackManager | None = None
) -> Optimized:
    """Run passes over a case, verified after each; both programs give the same.

    Args:
        case: The case.
        names: The passes; default: all for inference.
        rtol: As of numpy.testing.assert_allclose; 0 for both means equal bits.
        atol: As of numpy.testing.assert_allclose.
        manager: The packs; default: those of the process.

    Returns:
        What the passes left, whose reports say how often each matched.

    Raises:
        AssertionError: The outputs differ.
        GraphError: A pass breaks the program.
    """
    program, scope = case.build(manager)
    before = {name: np.array(value, copy=True) for name, value in case.params.items()}
    passes = [find_pass(name, manager) for name in names] or None
    fetches = case.fetches()
    optimized = optimize(program.desc, scope, keep=fetches, passes=passes, manager=manager, debug=True)
    for name, value in before.items():
        np.testing.assert_array_equal(scope.get_var(name).get().array, value, err_msg=f"parameter {name} was changed")
    errors = [f"{r.name}: {r.error}" for r in optimized.reports if r.error]
    assert not errors, "passes failed: " + "; ".join(errors)
    executor = Executor(manager=manager)
    plain = executor.run(program, case.feeds, fetches, scope, return_numpy=False)
    changed = executor.run(optimized.program, case.feeds, fetches, scope, return_numpy=False)
    for name, want, got in zip(fetches, plain, changed, strict=True):
        assert got.dtype == want.dtype and got.lod == want.lod, f"{name}: {got!r} instead of {want!r}"
        assert got.shape == want.shape, f"{name}: shape {got.shape} instead of {want.shape}"
        np.testing.assert_allclose(got.array, want.array, rtol=rtol, atol=atol, err_msg=name)
    return optimized


def op_types(optimized: Optimized) -> list[str]:
    """Types of the ops of block 0, in order."""
    return [op.type for op in optimized.program.blocks[0].ops]
