"""What rules and kernels are told that their context has, the contexts of a run have."""

from __future__ import annotations

import inspect
from typing import Any

import pytest
from oprack import kernel, op
from oprack.runtime.kernel_context import KernelContext
from oprack.runtime.kernel_type_context import KernelTypeContext

CONTEXTS = [(kernel.KernelContext, KernelContext), (op.KernelTypeContext, KernelTypeContext)]


def _functions(cls: type) -> dict[str, Any]:
    return {n: f for n, f in vars(cls).items() if inspect.isfunction(f) and not n.startswith("_")}


@pytest.mark.parametrize(("public", "run"), CONTEXTS)
def test_a_context_of_a_run_has_what_its_public_type_says(public: type, run: type) -> None:
    for name, function in _functions(public).items():
        parameters = inspect.signature(getattr(run, name)).parameters
        for p in inspect.signature(function).parameters.values():
            assert parameters[p.name].replace(annotation=p.annotation) == p, f"{name}({p.name})"
    values = {n for n, v in vars(public).items() if isinstance(v, property)} | set(public.__annotations__)
    source = inspect.getsource(run)
    assert {n for n in values if not hasattr(run, n) and f"self.{n} = " not in source} == set()


@pytest.mark.parametrize(("public", "run"), CONTEXTS)
def test_the_public_type_of_a_context_leaves_nothing_out(public: type, run: type) -> None:
    members = {n for n, v in vars(run).items() if not n.startswith("_") and (callable(v) or isinstance(v, property))}
    assert members <= set(vars(public))
