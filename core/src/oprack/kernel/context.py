"""KernelContext: what a kernel may ask about its op, and how it computes another one on arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeAlias

from oprack.errors import InvalidArgumentError, PreconditionNotMetError
from oprack.kernel.invoke import call_arrays
from oprack.kernel.kernel_map import ANY_KERNEL, Candidate, KernelRules, OpKernelMap
from oprack.kernel.predicates import KernelQuery
from oprack.op.infer import KernelTypeContext
from oprack.types import dtype_name

if TYPE_CHECKING:
    from oprack.device import DeviceContext
    from oprack.tensor import Place
    from oprack.tensor.lod_tensor import LoD

if TYPE_CHECKING:
    import numpy as np

    Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]
    RequiredArray: TypeAlias = Array | Any
else:
    # Annotations are text at run time, so that naming the types imports no array library.
    Array: TypeAlias = Any
    RequiredArray: TypeAlias = Any
"""An array of the place: NumPy's on the host, CuPy's on a GPU. CuPy brings no types, so a type checker sees NumPy's.

RequiredArray is for `X: RequiredArray = None` in a kernel. The parameter has a default because one before it may be
absent, or because the op's shape rule asks for X with some attributes alone; X is there wherever the kernel reads it,
so a type checker asks for no test of None.
"""

ArrayModule: TypeAlias = ModuleType
"""The array library of the place, NumPy or CuPy, as kernels get it in `xp`."""


class KernelContext:
    """What a kernel may ask about its op; injected as `ctx`.

    This class itself is for an op outside of a program, such as a step of a fused op's kernel or a call in a test.
    Nothing is known about the use of its outputs, so `wants` and `is_read` are True for all. A run derives its own
    class from it, `OperatorContext`.

    Args:
        op_type: The op.
        attrs: Its attributes; where packs are given, those that differ from the op's defaults are enough.
        lods: Offsets of the inputs by slot; slots without LoD may be left out.
        packs: The PackManager that has the ops; None means that `run_op` is not called.
        rules: Which kernels may run.
        device: The context of the arrays' place; None means NumPy arrays on the host.
    """

    __slots__ = ("_attrs", "_device", "_lods", "_op_type", "_packs", "_rules")

    def __init__(
        self,
        op_type: str,
        attrs: Mapping[str, Any] | None = None,
        lods: Mapping[str, Sequence[LoD]] | None = None,
        *,
        packs: Any = None,
        rules: KernelRules = ANY_KERNEL,
        device: DeviceContext | None = None,
    ) -> None:
        defaults = _defaults(packs, packs.revision, op_type) if packs is not None else {}
        self._op_type, self._rules, self._lods, self._packs = op_type, rules, lods or {}, packs
        self._attrs: Mapping[str, Any] = {**defaults, **attrs} if attrs else defaults
        self._device = device

    @property
    def op_type(self) -> str:
        """The op."""
        return self._op_type

    @property
    def attrs(self) -> Mapping[str, Any]:
        """All attributes of the op, those included that kernels rarely need."""
        return self._attrs

    @property
    def rules(self) -> KernelRules:
        """Which kernels the run may choose among."""
        return self._rules

    @property
    def packs(self) -> Any:
        """The PackManager that has the ops which `run_op` computes."""
        return self._packs

    @property
    def place(self) -> Place:
        """The place of the run."""
        return self.device.place

    @property
    def device(self) -> DeviceContext:
        """The DeviceContext of the place: streams and library handles."""
        if self._device is None:
            from oprack.device import CPUDeviceContext

            self._device = CPUDeviceContext()
        return self._device

    def lod(self, slot: str, i: int = 0) -> LoD:
        """Offsets of input i of a slot; [] when it has none or is absent."""
        lods = self._lods.get(slot, ())
        return lods[i] if i < len(lods) else []

    def wants(self, slot: str, i: int = 0) -> bool:
        """Whether output i of a slot is asked for; a gradient kernel may skip the others."""
        return True

    def is_read(self, *slots: str) -> bool:
        """Whether an op of the program, or a fetch, reads one of these outputs.

        Intermediate outputs are there for the gradient. A kernel that is faster without them may leave out those that
        are not read.
        """
        return True

    def input_count(self, slot: str) -> int:
        """Number of variables of an input slot.

        Raises:
            PreconditionNotMetError: The kernel was called on arrays alone, so that there is no run.
        """
        raise self._outside_of_a_run()

    def output_count(self, slot: str) -> int:
        """Number of variables of an output slot.

        Raises:
            PreconditionNotMetError: The kernel was called on arrays alone, so that there is no run.
        """
        raise self._outside_of_a_run()

    def output_dtype(self, slot: str) -> str | None:
        """dtype that the program declares for the first output of a slot; None when it does not say."""
        return None

    def generator(self, seed: int = 0) -> np.random.Generator:
        """Random generator of this draw; a seed other than 0 gives the same numbers on every run.

        Raises:
            PreconditionNotMetError: The kernel was called on arrays alone, so that there is no run.
        """
        raise self._outside_of_a_run()

    def run_op(
        self,
        op_type: str,
        inputs: Mapping[str, Any],
        attrs: Mapping[str, Any] | None = None,
        lods: Mapping[str, Sequence[LoD]] | None = None,
    ) -> Any:
        """Compute another op on arrays, by the best kernel that the run may choose; for kernels of fused ops.

        Args:
            op_type: The op; its shape rule is not asked.
            inputs: Arrays by slot, a list for a duplicable one, None for an absent one.
            attrs: Those that differ from the op's defaults.
            lods: Offsets of the inputs by slot.

        Returns:
            What the kernel returned: an array, a tuple in the order of OpProto, or a dict by slot.

        Raises:
            KernelNotFoundError: No kernel fits.
        """
        present = {slot: value for slot, value in inputs.items() if value is not None}
        packs, rules, device = self.packs, self.rules, self.device
        candidate = candidate_for(packs, op_type, present, attrs or {}, rules, device.place)
        step = KernelContext(op_type, attrs, lods, packs=packs, rules=rules, device=device)
        return call_arrays(op_type, candidate, present, step, xp=device.xp)

    def _outside_of_a_run(self) -> PreconditionNotMetError:
        return PreconditionNotMetError(
            f"op {self.op_type}: its kernel asks for variables or random numbers of a run, but was called on arrays "
            "alone; run the op by a program, or by oprack.create_op"
        )


def candidate_for(
    packs: Any,
    op_type: str,
    inputs: Mapping[str, Any],
    attrs: Mapping[str, Any],
    rules: KernelRules = ANY_KERNEL,
    place: Place | None = None,
) -> Candidate:
    """The best kernel of an op for arrays by slot, linked to those that take over when it declines.

    Args:
        packs: The PackManager.
        op_type: The op.
        inputs: Arrays by slot, a list for a duplicable one.
        attrs: Those that differ from the op's defaults.
        rules: Which kernels may run.
        place: Place of the arrays; None means the host.

    Raises:
        KernelNotFoundError: No kernel fits.
    """
    firsts = {s: v[0] if isinstance(v, list | tuple) else v for s, v in inputs.items() if not _is_empty(v)}
    dtypes = tuple((slot, array.dtype) for slot, array in firsts.items())
    frozen = tuple((name, tuple(v) if isinstance(v, list) else v) for name, v in attrs.items())
    if place is None:
        from oprack.tensor import CPUPlace

        place = CPUPlace()
    # The revision is part of the key: what packs bring may change, and with it the choice.
    return _choose(packs, packs.revision, op_type, place, dtypes, frozen, rules)


def _is_empty(value: Any) -> bool:
    return isinstance(value, list | tuple) and not value


@lru_cache(maxsize=256)
def _defaults(packs: Any, revision: int, op_type: str) -> Mapping[str, Any]:
    return {a.name: a.default for a in packs.op_info(op_type).proto.attrs.values()}


# The operators of a program keep their own choices; this cache is for the steps of fused ops and for calls in tests.
@lru_cache(maxsize=1024)
def _choose(
    packs: Any,
    revision: int,
    op_type: str,
    place: Place,
    dtypes: tuple[tuple[str, Any], ...],
    attrs: tuple[tuple[str, Any], ...],
    rules: KernelRules,
) -> Candidate:
    names = {slot: dtype_name(dtype) for slot, dtype in dtypes}
    if not names:
        raise InvalidArgumentError(f"op {op_type}: no inputs; expected an array at least, which says the dtype")
    unfrozen = {name: list(v) if isinstance(v, tuple) else v for name, v in attrs}
    all_attrs = {**_defaults(packs, revision, op_type), **unfrozen}
    query = KernelQuery(op_type, all_attrs, names, dict.fromkeys(names, "LoDTensor"), place.kind)
    info = packs.op_info(op_type)
    # Slots are in the order of the OpProto, since the rule goes by the first input that is present.
    context = KernelTypeContext(info, all_attrs, {s: [names[s]] for s in info.proto.inputs if s in names}, place)
    expected = info.expected_kernel_type(context) if info.expected_kernel_type is not None else context.common_dtype()
    library, excluded = rules.libraries(packs.extensions.library_attrs() if rules.by_attr else {}, all_attrs)
    if expected.library == "plain" and library != "plain":
        expected = replace(expected, library=library)
    kernels: OpKernelMap = packs.kernel_map(op_type, place.kind)
    return kernels.choose(expected, query, excluded, rules)
