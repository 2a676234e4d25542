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
from oprack.device import transform_tensor, transform_value
from oprack.errors import (
    AttributeValueError,
    DefinitionError,
    InvalidArgumentError,
    KernelNotFoundError,
    OprackError,
    PreconditionNotMetError,
)
from oprack.kernel import Candidate, KernelQuery, KernelSpec, OpKernelMap, OpKernelType
from oprack.op import KernelTypeContext, OpInfo
from oprack.op.facets import MEMBERS, near_member
from oprack.python.logs import get_logger
from oprack.runtime import checks
from oprack.runtime.infer import NOTHING_INFERRED, Inferred, RuntimeInferShapeContext, dtype_of_value, lists_elements
from oprack.runtime.kernel_call import Values, check_results, collect, compute
from oprack.runtime.operator import OPERATOR_CLASS_BY_PLACE, OperatorBase, created_at
from oprack.tensor import LoDTensor, LoDTensorArray, Place, Scope, numpy_dtype
from oprack.types import DTYPE_NAMES, EMPTY_VAR

if TYPE_CHECKING:
    from oprack.desc import BlockDesc, OpDesc
    from oprack.runtime.run_context import RunContext

_LOG = get_logger(__name__)
# Ops that a warning was given for, since they run elsewhere: one for each step of a training would bury all others.
_MOVED: set[tuple[str, str, str]] = set()
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
            OPERATOR_CLASS_BY_PLACE[place] = cls
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
        self.require_inputs(found)
        given = {s: found[s] for s in self._in_slots}
        known = len(self._chosen)
        best, expected = self.choose_kernel(given, run)
        new = len(self._chosen) != known
        clock = self._step(run, "choose_kernel", clock)
        at = run if best.spec.place == run.place.kind else run.at_place(best.spec.place)
        values = self._transformed(given, expected, at)
        attrs = self.resolved_attrs(scope) if self.tensor_attrs else self.attrs
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
            run.recorder(self, best, given, values, result, outputs, inferred, at is not run)
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
        key = (run.place, run.rules, tuple((type(v), dtype_of_value(v)) for vs in values.values() for v in vs))
        found = self._chosen.get(key)
        if found is None:
            found = self._chosen[key] = self._choose(values, run)
        return found

    def _choose(self, values: Mapping[str, Sequence[Any]], run: RunContext) -> tuple[Candidate, OpKernelType]:
        """Choose the kernel for some inputs.

        The op's rule may name another place than the run's, and where a place has no kernel that fits, that of the CPU
        runs; the log says so once for each op.

        Raises:
            KernelNotFoundError: No kernel fits.
            DuplicateKernelError: Two kernels fit equally well.
        """
        dtypes = {slot: [dtype_of_value(v) for v in vs] for slot, vs in values.items()}
        context = KernelTypeContext(self.info, self.attrs, dtypes, run.place, self.inputs, self.output_dtype)
        rule = self.info.expected_kernel_type
        expected = rule(context) if rule is not None else context.common_dtype()
        manager, here = run.program.manager, run.place.kind
        switches = manager.extensions.library_attrs() if run.rules.by_attr else {}
        asked, excluded = run.rules.libraries(switches, self.attrs)
        if expected.library == "plain" and asked != "plain":
            expected = replace(expected, library=asked)
        first = {s: next((v for v in vs if v is not None), None) for s, vs in values.items()}
        known = {s: d for s, v in first.items() if (d := dtype_of_value(v)) is not None}
        classes = {s: type(v).__name__ for s, v in first.items() if v is not None}
        query = KernelQuery(self.type, self.attrs, known, classes, here)
        ruled = expected.place != here
        kernels = manager.kernel_map(self.type, expected.place) if ruled else self._kernels
        try:
            chosen = kernels.choose(expected, query, excluded, run.rules)
        except KernelNotFoundError as missing:
            if expected.place == "cpu":
                raise
            expected = replace(expected, place="cpu", library="plain")
            try:
                on_host = manager.kernel_map(self.type, "cpu")
                chosen = on_host.choose(expected, query, excluded, run.rules)
            except KernelNotFoundError:
                # The error that lists the kernels of the place that was asked for says more than that of the CPU.
                raise missing from None
        if expected.place != here and (self.type, here, expected.place) not in _MOVED:
            _MOVED.add((self.type, here, expected.place))
            why = "the op's rule asks for it" if ruled else f"no kernel at {run.place!r} fits"
            text = "op %s: kernel %s of %s runs at %s, and its inputs and outputs are copied: %s"
            _LOG.warning(text, self.type, chosen.spec.name, chosen.spec.owner, expected.place, why)
        return chosen, expected

    @property
    def has_shape_rule(self) -> bool:
        """Whether there is anything to ask of the shapes of inputs."""
        return self.info.infer_shape is not None or bool(self._pairs)

    @property
    def has_kernels(self) -> bool:
        """Whether there is any kernel at the operator's place; else the CPU's runs."""
        return len(self._kernels) > 0

    # what the kernel gets -------------------------------------------------------------------------------------------
    def require_inputs(self, values: Mapping[str, Sequence[Any]]) -> None:
        """Refuse a needed input without a value, or too few of a list, before rules run.

        Raises:
            InvalidArgumentError: An input that the op needs is absent, or a list has too few.
            PreconditionNotMetError: It holds no value.
        """
        if self.too_few:
            raise InvalidArgumentError(f"op {self.type}: input {self.too_few}")
        for slot in self.needed:
            if slot not in values:
                doc = self.info.proto.inputs[slot].doc
                raise InvalidArgumentError(
                    f"op {self.type}: input {slot} is absent, but the op needs it; give the op a variable there"
                    + (f": {doc}" if doc else "")
                )
            if all(v is None for v in values[slot]):
                names = ", ".join(map(repr, self.inputs[slot]))
                raise PreconditionNotMetError(
                    f"op {self.type}: input {slot} (variable {names}) holds no value; feed it or run the op that "
                    "writes it first: for a parameter, run the startup program or load its file"
                )

    def _transformed(
        self, values: Mapping[str, list[Any]], expected: OpKernelType, run: RunContext
    ) -> dict[str, list[Any]]:
        """The inputs at the place and with the dtype of the kernel; the variables in the scope stay as they are."""
        rule = self.info.kernel_type_for_var
        prepared: dict[str, list[Any]] = {}
        for slot, vs in values.items():
            if slot in self.info.no_need_buffer_vars:
                prepared[slot] = vs
                continue
            new = vs
            for i, v in enumerate(vs):
                if not isinstance(v, LoDTensor):
                    moved = transform_value(v, run.place, run.pool)
                    if moved is not v:
                        new = list(vs) if new is vs else new
                        new[i] = moved
                    continue
                dtype = None
                if rule is not None:
                    actual = OpKernelType(v.place.kind, v.dtype)
                    dtype = rule(slot, actual, expected).dtype
                if v.place == run.place and dtype in (None, v.dtype):
                    continue
                if new is vs:
                    new = list(vs)
                new[i] = transform_tensor(v, run.place, run.pool, dtype=dtype)
            prepared[slot] = new
        return prepared

    def resolved_attrs(self, scope: Scope) -> dict[str, Any]:
        """All attributes; where the program names a variable for one, its value, with the attribute's type.

        Raises:
            PreconditionNotMetError: A variable holds no value, or not one element.
            AttributeValueError: A value is out of range.
        """
        resolved = dict(self.attrs)
        for name, source in self.tensor_attrs.items():
            proto = self.info.proto.attrs[name]
            names = [source] if isinstance(source, str) else list(source)
            flat = [x for n in names for x in np.asarray(self.get_input(scope, n)).reshape(-1).tolist()]
            if not proto.type.name.endswith("S") and len(flat) != 1:
                raise PreconditionNotMetError(
                    f"op {self.type}: attribute {name!r} is taken from "
                    f"{', '.join(map(repr, names)) or 'no variable'}, which holds {len(flat)} values; expected one"
                )
            resolved[name] = flat if proto.type.name.endswith("S") else flat[0]
        assert self.info.checker is not None
        return self.info.checker.check(resolved)

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
        operator_class = OPERATOR_CLASS_BY_PLACE.get(place.kind) or creator or OperatorWithKernel
        operator = operator_class(desc, info, block, index, manager.kernel_map(desc.type, place.kind))
        return operator
    except AttributeValueError as error:
        where = created_at(desc.attrs)
        raise AttributeValueError(
            f"{error}\nop number {index} of block {block.idx}" + (f", created by {where}" if where else "")
        ) from error
