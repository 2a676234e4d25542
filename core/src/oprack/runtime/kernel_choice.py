"""The choice of an op's kernel in a run: its expected type, the run's rules, and the host where its place has none."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from oprack.errors import KernelNotFoundError, NotFoundError
from oprack.kernel import Candidate, KernelQuery, OpKernelMap, OpKernelType
from oprack.runtime.infer import dtype_of_value
from oprack.runtime.kernel_type_context import KernelTypeContext
from oprack.tensor.place import Place

if TYPE_CHECKING:
    from oprack.runtime.kernel_operator import OperatorWithKernel
    from oprack.runtime.run_context import RunContext

_LOG = logging.getLogger(__name__)
# Ops that a warning was given for, since they run elsewhere: one for each step of a training would bury all others.
_MOVED: set[tuple[str, str, str]] = set()


def choose(
    op: OperatorWithKernel, kernels: OpKernelMap, values: Mapping[str, Sequence[Any]], run: RunContext
) -> tuple[Candidate, OpKernelType]:
    """Choose the kernel of an operator for its inputs.

    Args:
        op: The operator.
        kernels: The op's kernels at the run's sort of place. The op's rule may name another place, and where a place
            has no kernel that fits, that of the CPU runs; the log says so once for each op.
        values: Inputs by slot.
        run: The run.

    Returns:
        The kernel, and the OpKernelType by which it was chosen.

    Raises:
        KernelNotFoundError: No kernel fits.
        DuplicateKernelError: Two kernels fit equally well.
    """
    context = KernelTypeContext(op, values, run.place)
    rule = op.info.expected_kernel_type
    expected = rule(context) if rule is not None else context.common_dtype()
    manager, here = run.program.manager, run.place.kind
    asked, excluded = run.rules.libraries(manager.extensions.library_attrs() if run.rules.by_attr else {}, op.attrs)
    if expected.library == "plain" and asked != "plain":
        expected = replace(expected, library=asked)
    query = _query(op, values, here)
    why = f"no kernel at {run.place!r} fits"
    if expected.place != here:
        kernels, why = manager.kernel_map(op.type, expected.place), "the op's rule asks for it"
    try:
        chosen = kernels.choose(expected, query, excluded, run.rules.deterministic)
    except KernelNotFoundError as missing:
        if expected.place == "cpu":
            raise
        expected = replace(expected, place="cpu", library="plain")
        try:
            on_host = manager.kernel_map(op.type, "cpu")
            chosen = on_host.choose(expected, query, excluded, run.rules.deterministic)
        except KernelNotFoundError:
            # The error that lists the kernels of the place that was asked for says more than that of the CPU.
            raise missing from None
    if expected.place != here and (op.type, here, expected.place) not in _MOVED:
        _MOVED.add((op.type, here, expected.place))
        text = "op %s: kernel %s of %s runs at %s, and its inputs and outputs are copied: %s"
        _LOG.warning(text, op.type, chosen.spec.name, chosen.spec.owner, expected.place, why)
    return chosen, expected


def _query(op: OperatorWithKernel, values: Mapping[str, Sequence[Any]], place: str) -> KernelQuery:
    first = {s: next((v for v in vs if v is not None), None) for s, vs in values.items()}
    present = {s: v for s, v in first.items() if v is not None}
    dtypes = {s: d for s, v in present.items() if (d := dtype_of_value(v)) is not None}
    return KernelQuery(op.type, op.attrs, dtypes, {s: type(v).__name__ for s, v in present.items()}, place)


def at_place(run: RunContext, kind: str) -> RunContext:
    """The same run at the first device of another sort, for one op.

    Raises:
        NotFoundError: No class of places has this name.
    """
    for place_class in _subclasses(Place):
        if place_class.kind == kind:
            place = place_class()
            return replace(run, place=place, device=run.pool.get(place))
    raise NotFoundError(f"place {kind!r}: no class of places has this kind; import the plugin that brings it")


def _subclasses(base: type[Place]) -> list[type[Place]]:
    return [found for direct in base.__subclasses__() for found in (direct, *_subclasses(direct))]
