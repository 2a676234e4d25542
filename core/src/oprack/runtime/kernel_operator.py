"""OperatorWithKernel: the reference path of an op, step by step as in Fluid's RunImpl."""

from __future__ import annotations

import contextlib
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from oprack.cache import Cache
from oprack.device import transform_value
from oprack.errors import AttributeValueError, DefinitionError, InvalidArgumentError, OprackError
from oprack.kernel import Candidate, KernelSpec, OpKernelMap, OpKernelType
from oprack.op import OpInfo
from oprack.op.facets import MEMBERS, near_member
from oprack.runtime import checks
from oprack.runtime.describe import created_at
from oprack.runtime.infer import NOTHING_INFERRED, Inferred, RuntimeInferShapeContext, dtype_of_value, lists_elements
from oprack.runtime.kernel_call import compute
from oprack.runtime.kernel_choice import at_place, choose
from oprack.runtime.kernel_inputs import Values, require_inputs, resolved_attrs, transformed
from oprack.runtime.kernel_results import check_results, collect
from oprack.runtime.operator import OF_PLACES, OperatorBase
from oprack.runtime.record import OpRecord
from oprack.tensor import LoDTensor, LoDTensorArray, Place, Scope, numpy_dtype
from oprack.types import DTYPE_NAMES, EMPTY_VAR

if TYPE_CHECKING:
    from oprack.desc import BlockDesc, OpDesc
    from oprack.runtime.run_context import RunContext

_SHAPE_CACHE_SIZE = 16


class OperatorWithKernel(OperatorBase):
    """An op computed by a kernel.

    What it decides is cached: the kernel by dtypes and containers, what the shape rule says by shapes.

    Derive from it, as in Fluid, to give an op its rules by methods: `infer_shape(self, ctx)` counts as the facet of
    that name, and so do all other members of a definition class, such as `make_grad(self, fwd)` and `inplace`. The
    class goes to `register_operator` with the other facets. Rules also run where there is no operator, as when a
    program is built: `self` has `type` and `info` alone.

    Derived classes have rules and private helpers, and nothing else: plans and eager calls run the kernel, so that
    another `run_impl` would count on the reference path only. An op that runs in its own way derives from OperatorBase.
    The class argument `place` is for the core and for plugins: a class of operators for every op at a kind of place.

    Args:
        desc: The OpDesc.
        info: The OpInfo.
        block: The block that has it.
        index: Its position there.
        kernels: The kernels of the op.
    """

    runs_itself: ClassVar[bool] = False

    def __init_subclass__(cls, place: str = "", **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if place:
            OF_PLACES[place] = cls
        else:
            _require_rules_only(cls)

    def __init__(self, desc: OpDesc, info: OpInfo, block: BlockDesc, index: int, kernels: OpKernelMap) -> None:
        super().__init__(desc, info, block, index)
        self._kernels = kernels
        # both live as long as the operator; the choice is dropped when a kernel turns out to be at fault
        self._chosen: dict[Any, tuple[Candidate, OpKernelType]] = {}
        self._inferred = Cache(_SHAPE_CACHE_SIZE)
        self._in_slots = [s for s in info.proto.inputs if s in self.inputs]
        self._out_slots = [s for s in info.proto.outputs if s in self.outputs]
        self._read: dict[str, bool] = {}
        self.needed = [s for s, slot in info.proto.inputs.items() if not slot.dispensable]
        counts = ((slot, len(self.inputs.get(s, ()))) for s, slot in info.proto.inputs.items())
        self.too_few = next((few for slot, count in counts if (few := slot.too_few(count))), "")
        # gradients have the shape of what they are of; sizes are compared, since [1] and [] stand for one another
        self._pairs = [(s, f"{s}@GRAD") for s in self._in_slots if f"{s}@GRAD" in self._in_slots]
        self.declined: dict[str, str] = {}
        """Kernels that declined in the last run on the reference path, and why."""
        self.first_inplace = self._inplace().get(self._out_slots[0]) if self._out_slots else None

    def kernels(self) -> Iterable[KernelSpec]:
        """The kernels among which it chooses."""
        return self._kernels

    def _inplace(self) -> dict[str, str]:
        """Output slots that are their own input, with the input's slot.

        An input that is also read elsewhere in the op stays as it is: the output gets a buffer of its own.
        """
        read = Counter(n for names in self.inputs.values() for n in names)
        return {
            out: x
            for x, out in self.info.inplace.items()
            if x in self.inputs and out in self.outputs and self.inputs[x] == self.outputs[out]
            if all(read[n] == 1 for n in self.inputs[x])
        }

    def is_inplace(self, slot: str) -> bool:
        """Whether the op writes its input `slot`: the buffer of an output that has the same variable."""
        written = {n for names in self.outputs.values() for n in names if n != EMPTY_VAR}
        return any(n in written for n in self.inputs[slot])

    def is_read(self, slot: str) -> bool:
        """Whether another op of the program reads an output, or the output is persistable."""
        found = self._read.get(slot)
        if found is None:
            names = set(self.outputs.get(slot, ())) - {EMPTY_VAR}
            others = (op for block in self.block.program.blocks for op in block.ops if op is not self.desc)
            kept = any((var := self.block.find_var_recursive(name)) and var.persistable for name in names)
            found = kept or any(names.intersection(op.input_arg_names()) for op in others if names)
            self._read[slot] = found
        return found

    def run_impl(self, scope: Scope, run: RunContext) -> None:
        """Choose a kernel, transform inputs, ask the shape rule, compute.

        Args:
            scope: Where its variables are.
            run: The run that it is part of.
        """
        clock = time.perf_counter_ns() if run.profiler else 0
        self.declined = {}
        found = self.input_values(scope)
        require_inputs(self, found)
        given = {s: found[s] for s in self._in_slots}
        known = len(self._chosen)
        best, expected = self.choose_kernel(given, run)
        new = len(self._chosen) != known
        clock = self._step(run, "choose_kernel", clock)
        at = run if best.spec.place == run.place.kind else at_place(run, best.spec.place)
        values = transformed(self, given, expected, at)
        attrs = resolved_attrs(self, scope) if self.tensor_attrs else self.attrs
        clock = self._step(run, "prepare_data", clock)
        inferred = self.run_infer_shape(values, attrs)
        if run.limits.memory is not None:
            dtype_of = partial(self._largest_dtype, dtype=numpy_dtype(expected.dtype))
            run.limits.check_outputs(self, inferred.dims, dtype_of, partial(lists_elements, self, values))
        clock = self._step(run, "infer_shape", clock)
        chosen, result, computed = self._compute(best, values, attrs, inferred, new, run, at)
        outputs = computed if at is run else self._moved_back(computed, run)
        clock = self._step(run, "compute", clock)
        self._write_back(scope, outputs)
        clock = self._step(run, "write_back", clock)
        if run.recorder is not None:
            record = OpRecord.of(self, best, given, values, result, outputs, inferred)
            run.recorder.append(record if at is run else replace(record, compilable=False))
        if run.checks:
            self._check(run, chosen, values, outputs)
            self._step(run, "checks", clock)

    def _compute(
        self,
        best: Candidate,
        values: Values,
        attrs: Mapping[str, Any],
        inferred: Inferred,
        new: bool,
        run: RunContext,
        at: RunContext,
    ) -> tuple[Candidate, Any, dict[str, list[Any]]]:
        """(the kernel that computed, what it returned, the same as values of the outputs), checked.

        Args:
            best: The kernel to ask first.
            values: Inputs by slot.
            attrs: Attributes.
            inferred: What the shape rule says of the outputs.
            new: Whether the kernel has not been called for these dtypes and containers yet.
            run: The run.
            at: The same at the kernel's place.
        """
        # calls of a kernel for new dtypes, containers or shapes are watched; all others cost nothing for it
        first = new or not inferred.watched
        whole = run.checks.overwritten_input
        before = checks.fingerprint(self, values, whole=whole) if first or whole else None
        with _NOWHERE_ELSE if at is run else at.device.activate():
            chosen, result = compute(self, best, values, attrs, at, before is not None, whole)
        outputs = collect(self, chosen, result, inferred.shares, values, at)
        try:
            check_results(self, chosen, inferred.dims, values, outputs, dtypes=first)
            if before is not None:
                checks.check_overwritten(self, chosen, values, before, whole=whole)
        except OprackError:
            self._chosen.clear()  # the kernel is at fault: the next call is watched again
            raise
        inferred.watched = True
        return chosen, result, outputs

    def _moved_back(self, outputs: Values, run: RunContext) -> dict[str, list[Any]]:
        """Outputs of a kernel that ran at another place, at that of the run."""
        return {s: [transform_value(v, run.place, run.pool) for v in vs] for s, vs in outputs.items()}

    def _write_back(self, scope: Scope, outputs: Values) -> None:
        try:
            self._set_outputs(scope, outputs)
        except BaseException:  # an interruption may leave all outputs behind, or none
            self._set_outputs(scope, outputs)
            raise

    def _set_outputs(self, scope: Scope, outputs: Values) -> None:
        for slot in self._out_slots:
            for name, value in zip(self.outputs[slot], outputs.get(slot, ()), strict=False):
                if value is not None:
                    self.set_output(scope, name, value)

    def _check(self, run: RunContext, chosen: Candidate, values: Values, outputs: Values) -> None:
        """The checks that were switched on for the run."""
        if run.checks.overwritten_input:
            checks.check_aliased(self, chosen, values, outputs)
        if run.checks.unused_input:
            checks.check_unused(self, chosen)
        if run.checks.nan_inf:
            checks.check_finite(self, outputs)

    def _step(self, run: RunContext, name: str, start: int) -> int:
        if not run.profiler:
            return 0
        if name == "compute":
            run.device.synchronize()  # a device works on after its kernel returned; that time belongs here
        return run.profiler.add(f"{self.type}.{name}", "step", start)

    # choose the kernel ----------------------------------------------------------------------------------------------
    def choose_kernel(self, values: Mapping[str, Sequence[Any]], run: RunContext) -> tuple[Candidate, OpKernelType]:
        """The kernel for these inputs, cached by their classes and dtypes, the place and the run's rules."""
        key = (
            run.place,
            run.rules,
            tuple((type(v), dtype_of_value(v)) for vs in values.values() for v in vs),
        )
        found = self._chosen.get(key)
        if found is None:
            found = self._chosen[key] = choose(self, self._kernels, values, run)
        return found

    @property
    def has_kernels(self) -> bool:
        """Whether there is any kernel at the operator's place; else the CPU's runs."""
        return len(self._kernels) > 0

    # infer shape ----------------------------------------------------------------------------------------------------
    def run_infer_shape(self, values: Values, attrs: Mapping[str, Any]) -> Inferred:
        """Run the shape rule on the inputs, or take what it said for the same shapes and LoD levels."""
        key = None
        if not self.tensor_attrs and not any(isinstance(v, LoDTensorArray) for vs in values.values() for v in vs):
            key = tuple(
                (v.shape, len(v.lod)) if isinstance(v, LoDTensor) else getattr(v, "shape", None)
                for vs in values.values()
                for v in vs
            )
            found: Inferred | None = self._inferred[key]
            if found is not None:
                return found
        inferred = self.ask_shape_rule(values, attrs)
        if key is not None and not inferred.from_values:
            self._inferred[key] = inferred
        return inferred

    def ask_shape_rule(self, values: Values, attrs: Mapping[str, Any]) -> Inferred:
        """Ask the shape rule about the inputs, after gradients were found to have the sizes of their values.

        Args:
            values: Values by input slot.
            attrs: The attributes.

        Returns:
            What the rule says.

        Raises:
            InvalidArgumentError: A gradient has another size than what it is the gradient of.
        """
        for slot, grad in self._pairs:
            for value, gradient in zip(values[slot], values[grad], strict=False):
                dense = isinstance(value, LoDTensor) and isinstance(gradient, LoDTensor)
                if dense and value.array.size != gradient.array.size:
                    raise InvalidArgumentError(
                        f"op {self.type}: {grad} has shape {list(gradient.shape)}, but {slot} has {list(value.shape)}; "
                        "expected the shape of what it is the gradient of"
                    )
        rule = self.info.infer_shape
        if rule is None:
            return NOTHING_INFERRED
        context = RuntimeInferShapeContext(self.info.proto, attrs, values, self.inputs, self.outputs)
        context.listed = partial(lists_elements, self, values)
        rule(context)
        return Inferred(context.dims_set, context.shares, context.read_values)

    def _largest_dtype(self, slot: str, i: int, dtype: np.dtype) -> np.dtype:
        """dtype of an output before it is computed: the kernel's, or the declared one where that is larger."""
        declared = self.block.find_var_recursive(self.outputs[slot][i])
        if declared is None or declared.dtype not in DTYPE_NAMES:
            return dtype
        return max(dtype, numpy_dtype(declared.dtype), key=lambda d: d.itemsize)


def _require_rules_only(cls: type[OperatorWithKernel]) -> None:
    """Refuse members that no fast path would ask, in a class or in what it is mixed with."""
    for base in cls.__mro__:
        if base in OperatorWithKernel.__mro__:
            continue
        for name, value in vars(base).items():
            if name in MEMBERS or (name.startswith("__") and name.endswith("__")):
                continue
            where = f"operator class {cls.__qualname__}: {name}"
            if hasattr(OperatorWithKernel, name):
                raise DefinitionError(
                    f"{where} is what OperatorWithKernel does with every op, and prepared programs and eager calls do "
                    "it without the class; write a kernel (@kernel), or derive from OperatorBase for an op that runs "
                    "itself"
                )
            if not name.startswith("_") and name != "op_type":
                raise DefinitionError(
                    f"{where} = {value!r} is no rule of an op{near_member(name, MEMBERS)}; expected one of "
                    f"{', '.join(MEMBERS)} (helpers start with '_' or live outside the class)"
                )


_NOWHERE_ELSE = contextlib.nullcontext()


def create_operator(desc: OpDesc, block: BlockDesc, index: int, manager: Any, place: Place) -> OperatorBase:
    """The operator of an OpDesc: the op's own class when it runs itself, else OperatorWithKernel.

    Raises UnknownOpError, AttributeValueError.
    """
    info = manager.op_info(desc.type)
    creator = info.creator or manager.creator(desc.type)
    try:
        if creator is not None and getattr(creator, "runs_itself", True):
            operator: OperatorBase = creator(desc, info, block, index)
            return operator
        made = OF_PLACES.get(place.kind) or creator or OperatorWithKernel
        found: OperatorBase = made(desc, info, block, index, manager.kernel_map(desc.type, place.kind))
        return found
    except AttributeValueError as error:
        where = created_at(desc.attrs)
        raise AttributeValueError(
            f"{error}\nop number {index} of block {block.idx}" + (f", created by {where}" if where else "")
        ) from error
