"""Kernels that run the kernels of other ops: what a fused op stands for, step by step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np

from oprack.errors import InvalidArgumentError
from oprack.kernel import ANY_KERNEL, Candidate, KernelQuery, KernelRules, OpKernelType
from oprack.kernel.invoke import call_arrays
from oprack.op import OpInfo
from oprack.runtime.kernel_type_context import KernelTypeContext
from oprack.tensor import CPUPlace, LoDTensor, Place
from oprack.tensor.lod_tensor import LoD
from oprack.types import dtype_name

if TYPE_CHECKING:
    from oprack.packs.manager import PackManager

_HOST = CPUPlace()


class StepContext:
    """The `ctx` of a kernel whose op stands in no program; of the run it knows only which kernels may run.

    Args:
        manager: the packs.
        op_type: the op.
        attrs: those that differ from the op's defaults.
        rules: which kernels may run.
        lods: offsets of the inputs by slot.
        place: place of the arrays.
        xp: NumPy or CuPy.
    """

    def __init__(
        self,
        manager: PackManager,
        op_type: str,
        attrs: Mapping[str, Any] | None = None,
        rules: KernelRules = ANY_KERNEL,
        lods: Mapping[str, Sequence[LoD]] | None = None,
        place: Place = _HOST,
        xp: Any = np,
    ) -> None:
        self.manager, self.op_type, self.rules, self._lods = manager, op_type, rules, lods or {}
        defaults = _defaults(manager, manager.revision, op_type)
        self.attrs = {**defaults, **attrs} if attrs else defaults
        self.place, self._xp = place, xp

    def lod(self, slot: str, i: int = 0) -> LoD:
        """Offsets of input i of a slot; [] when it has none."""
        lods = self._lods.get(slot, ())
        return lods[i] if i < len(lods) else []

    def wants(self, slot: str, i: int = 0) -> bool:
        """Every output is asked for."""
        return True

    def is_read(self, *slots: str) -> bool:
        """Nobody says which outputs are left alone, so all of them are read."""
        return True

    def run_op(
        self,
        op_type: str,
        inputs: Mapping[str, Any],
        attrs: Mapping[str, Any] | None = None,
        lods: Mapping[str, Sequence[LoD]] | None = None,
    ) -> Any:
        """As KernelContext.run_op."""
        step = StepContext(self.manager, op_type, attrs, self.rules, lods, self.place, self._xp)
        return step.compute(inputs, attrs or {})

    def compute(self, inputs: Mapping[str, Any], differing: Mapping[str, Any]) -> Any:
        """Run the best kernel of the op that does not decline.

        Args:
            inputs: arrays by slot, a list for a duplicable one, None for an absent one.
            differing: the attributes that differ from the op's defaults.

        Returns:
            What the kernel returned: an array, a tuple in the order of OpProto, or a dict by slot.

        Raises:
            KernelNotFoundError: no kernel fits.
        """
        present = {slot: value for slot, value in inputs.items() if value is not None}
        candidate = candidate_for(self.manager, self.op_type, present, differing, self.rules, self.place.kind)
        return call_arrays(self.op_type, candidate, present, self, xp=self._xp)


def candidate_for(
    manager: PackManager,
    op_type: str,
    inputs: Mapping[str, Any],
    attrs: Mapping[str, Any],
    rules: KernelRules = ANY_KERNEL,
    place: str = "cpu",
) -> Candidate:
    """The best kernel of an op for arrays by slot, linked to those that take over when it declines.

    Args:
        manager: the packs.
        op_type: the op.
        inputs: arrays by slot, a list for a duplicable one.
        attrs: those that differ from the op's defaults.
        rules: which kernels may run.
        place: sort of place of the arrays.

    Raises:
        KernelNotFoundError: no kernel fits.
    """
    firsts = {s: v[0] if isinstance(v, list | tuple) else v for s, v in inputs.items() if not _is_empty(v)}
    dtypes = tuple((slot, array.dtype) for slot, array in firsts.items())
    frozen = tuple((name, tuple(v) if isinstance(v, list) else v) for name, v in attrs.items())
    # The revision is part of the key: what packs bring may change, and with it the choice.
    return _choose(manager, manager.revision, op_type, place, dtypes, frozen, rules)


def _is_empty(value: Any) -> bool:
    return isinstance(value, list | tuple) and not value


@lru_cache(maxsize=256)
def _defaults(manager: PackManager, revision: int, op_type: str) -> Mapping[str, Any]:
    return {a.name: a.default for a in manager.op_info(op_type).proto.attrs.values()}


# The only cache of choices without a program: one entry per op type, dtypes and attributes of the steps of fused ops.
@lru_cache(maxsize=1024)
def _choose(
    manager: PackManager,
    revision: int,
    op_type: str,
    place: str,
    dtypes: tuple[tuple[str, Any], ...],
    attrs: tuple[tuple[str, Any], ...],
    rules: KernelRules,
) -> Candidate:
    names = {slot: dtype_name(dtype) for slot, dtype in dtypes}
    if not names:
        raise InvalidArgumentError(f"op {op_type}: no inputs; expected an array at least, which says the dtype")
    listed = {name: list(v) if isinstance(v, tuple) else v for name, v in attrs}
    every = {**_defaults(manager, revision, op_type), **listed}
    query = KernelQuery(op_type, every, names, dict.fromkeys(names, "LoDTensor"), place)
    expected = _expected(manager.op_info(op_type), every, dict(dtypes), place)
    asked, excluded = rules.libraries(manager.extensions.library_attrs() if rules.by_attr else {}, every)
    if expected.library == "plain" and asked != "plain":
        expected = replace(expected, library=asked)
    return manager.kernel_map(op_type, place).choose(expected, query, excluded, rules.deterministic)


def _expected(info: OpInfo, attrs: Mapping[str, Any], dtypes: Mapping[str, Any], place: str) -> OpKernelType:
    """What the op's rule asks for, by stand-ins for its inputs."""
    # A rule of the kernel type looks at dtypes and not at values, so empty tensors do.
    values = {slot: [LoDTensor(np.empty(0, dtypes[slot]))] for slot in info.proto.inputs if slot in dtypes}
    op = SimpleNamespace(type=info.type, attrs=attrs, info=info, inputs={}, output_dtype=lambda slot: None)
    context = KernelTypeContext(op, values, SimpleNamespace(kind=place))  # type: ignore[arg-type]
    return info.expected_kernel_type(context) if info.expected_kernel_type is not None else context.common_dtype()
