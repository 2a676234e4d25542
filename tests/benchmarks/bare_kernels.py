"""What the kernels of a chain cost by themselves: a straight Python loop over the functions that a plan calls.

The loop pays for itself, so a plan may even need less time: its calls stand one after the other.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from workloads import Workload


def chain(workload: Workload) -> Callable[[], list[np.ndarray]]:
    """The NumPy kernels of a chain of tiny ops with their attributes bound, after the same passes; no feed, no fetch,
    no scope. Passes and kernels of libraries are left out, since the loop is compared with the NumPy kernels' plan, and
    so are ops in front that read a parameter, too.

    Raises:
        LookupError: No op is left.
    """
    from oprack.io import load_inference_model
    from oprack.ir import optimize, select_passes
    from oprack.packs.manager import default_manager
    from oprack.tensor import Scope

    manager, scope = default_manager(), Scope()
    model = load_inference_model(workload.model, scope)
    passes = select_passes(excluded_libraries=tuple(manager.extensions.libraries()))
    program = optimize(model.program.desc, scope, keep=model.fetch_names, passes=passes).program
    (name,) = model.feed_names
    calls: list[tuple[Callable[..., Any], int, dict[str, Any]]] = []
    for op in program.blocks[0].ops:
        given = op.input_arg_names()
        if name not in given or op.type in ("feed", "fetch"):
            continue
        if set(given) == {name}:
            calls.append((*_kernel(manager, op, workload.feeds[0].dtype), len(given)))
        (name,) = op.output_arg_names()
    if not calls:
        raise LookupError(f"{workload.name}: no op of the chain has kernels of its own after the passes")
    x = workload.feeds[0]

    def run() -> list[np.ndarray]:
        y = x
        for function, attrs, count in calls:
            y = function(y, **attrs) if count == 1 else function(y, y, **attrs)
        return [y]

    return run


def _kernel(manager: Any, op: Any, dtype: np.dtype) -> tuple[Callable[..., Any], dict[str, Any]]:
    """The plain kernel of an op for dense tensors, or what it prepares for a plan, and its keyword arguments."""
    from oprack.kernel import KernelSpecialization, bind_signature

    proto = manager.op_info(op.type).proto
    attrs = {a.name: op.attrs.get(a.name, a.default) for a in proto.attrs.values()}
    for spec in manager.kernel_map(op.type, "cpu"):
        signature = bind_signature(spec.function, proto)
        if spec.library != "plain" or dtype.name not in spec.dtypes or any(c for *_, c in signature.inputs):
            continue
        dtypes = {slot: (dtype,) * len(names) for slot, names in op.inputs.items()}
        prepared = spec.specialize and spec.specialize(KernelSpecialization(op.type, attrs, dtypes, np))
        if prepared is not None:
            return prepared, {}
        given = {p: attrs[a] for p, a in signature.attrs}
        return spec.function, given | ({"xp": np} if "xp" in signature.injected else {})
    raise LookupError(op.type)
