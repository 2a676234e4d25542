"""OpCase: one op with inputs, attributes and expected outputs in a few lines; and the numeric gradient check."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from oprack.desc import BlockDesc, OpDesc
from oprack.errors import CODE_ERRORS, DefinitionError, OprackError, PackError
from oprack.op.desc_rules import grad_name, grad_op_descs, infer_op
from oprack.op.info import OpInfo
from oprack.op.proto import OpProto
from oprack.packs.manager import default_manager
from oprack.program import Program
from oprack.runtime import Executor
from oprack.tensor import LoDTensor, LoDTensorArray, SelectedRows, SparseTensor
from oprack.tensor.kinds import KINDS, kind_of
from oprack.testing.any_kind import as_value, copied, difference, elements, map_values, to_float64, with_elements
from oprack.testing.runner import CHECKS
from oprack.types import EMPTY_VAR, AttrType, VarType


@dataclass
class OpCase:
    """One op with its inputs, attributes and expected outputs.

    `OpCase("relu", {"X": x}, outputs={"Out": np.maximum(x, 0)}, grads=["X"])`.

    Attributes:
        op: The op type.
        inputs: Slot -> array, LoDTensor, sparse value, or a list of these for a duplicable slot.
        attrs: Attributes by name.
        outputs: As inputs; an output given as None is not compared.
        grads: Input slots whose gradient is checked against central differences at float64.
        name: Tells cases of one op apart.
        rtol: Relative tolerance of the outputs, |got - want| <= atol + rtol * |want|.
        atol: Absolute tolerance of the outputs.
        loss: Output slots through which gradients are checked; (): all.
    """

    op: str
    inputs: Mapping[str, Any] = field(default_factory=dict)
    attrs: Mapping[str, Any] = field(default_factory=dict)
    outputs: Mapping[str, Any] = field(default_factory=dict)
    grads: Sequence[str] = ()
    name: str = ""
    rtol: float = 1e-5
    atol: float = 1e-6
    loss: Sequence[str] = ()

    @property
    def id(self) -> str:
        """The case's name."""
        return f"{self.op}-{self.name}" if self.name else self.op

    def check(self) -> list[str]:
        """What differs on the reference path, on the prepared path, and in the gradients; [] when all agree.

        Raises DefinitionError when the case names a slot that the op does not have, PackError when the pack is broken,
        and OpError when a kernel's code is, whatever its inputs are.
        """
        found = []
        prepared = Executor()
        try:
            built = build(self, self.inputs)
            # the first prepared run of a program is traced, the second one runs generated code
            for executor in (Executor(prepared=False, checks=CHECKS), prepared, prepared):
                found += self.differences(executor, built)
        except (DefinitionError, PackError):
            raise
        except OprackError as error:
            if isinstance(error.__cause__, CODE_ERRORS):
                raise
            return [f"{self.id}: {type(error).__name__}: {error}"]
        return found + (self.check_gradient() if self.grads and not found else [])

    def differences(self, executor: Executor, built: Built) -> list[str]:
        """What one run of `build(case, case.inputs)` gives other than expected; [] when all agree."""
        values = executor.run(built.program, built.feed, built.fetch, built.scope(), return_numpy=False)
        found = []
        for name, want, got in zip(built.fetch, built.expected, values, strict=True):
            reason = difference(want, got, self.rtol, self.atol)
            if reason:
                found.append(f"{self.id}: {name} {reason}")
        return found

    def check_gradient(self, step: float = 1e-5, tolerance: float = 1e-5) -> list[str]:
        """Compare gradients with central differences of the op itself, in one random direction per input.

        The loss is the inner product of the floating outputs with random cotangents, at float64 and complex128. The
        gradient of a complex input is what makes the slope in direction d the real part of sum(conj(gradient) * d).
        """
        wide = {slot: map_values(v, to_float64) for slot, v in self.inputs.items()}
        built = build(self, wide)
        rng = np.random.default_rng(0)
        executor = Executor()
        outputs = executor.run(built.program, built.feed, built.outputs, built.scope(), return_numpy=False)
        cotangents = {
            name: with_elements(v, random_like(elements(v), rng))
            for name, v in zip(built.outputs, outputs, strict=True)
            if isinstance(v, LoDTensor | SparseTensor) and v.dtype in ("float64", "complex128")
        }
        try:
            gradients = built.gradients(executor, cotangents, self.grads)
        except PackError:
            raise
        except OprackError as error:
            return [f"{self.id} gradient: {type(error).__name__}: {error}"]
        found = []
        for slot in self.grads:
            for name, value in built.bound[slot]:
                direction = random_like(elements(value), rng)
                analytic = inner(np.asarray(gradients[name]), direction)
                losses = []
                for sign in (1, -1):
                    moved = dict(built.feed) | {name: with_elements(value, elements(value) + sign * step * direction)}
                    outs = executor.run(built.program, moved, list(cotangents), built.scope(), return_numpy=False)
                    pairs = zip(outs, cotangents.values(), strict=True)
                    losses.append(sum(inner(elements(o), elements(c)) for o, c in pairs))
                numeric = (losses[0] - losses[1]) / (2 * step)
                if abs(analytic - numeric) > tolerance * max(1.0, abs(numeric)):
                    found.append(
                        f"{self.id}: gradient of {name} is {analytic:.8g} in a random direction, "
                        f"central differences give {numeric:.8g}"
                    )
        return found


@dataclass
class Built:
    """A case as a program of one op, with its variables named `<slot>_<i>`.

    given: variable -> value of each input; bound: the same by slot. outputs: those that a loss may read. fetch,
    expected: variables to compare, and their values.
    """

    info: OpInfo
    program: Program
    op: OpDesc
    bound: Mapping[str, list[tuple[str, Any]]]
    given: Mapping[str, Any]
    outputs: list[str]
    fetch: list[str]
    expected: list[Any]

    @property
    def feed(self) -> dict[str, Any]:
        """The inputs that can be fed."""
        return {n: v for n, v in self.given.items() if isinstance(v, LoDTensor | SparseTensor)}

    def scope(self) -> Any:
        """A scope with the inputs that can't be fed."""
        from oprack.tensor import Scope

        scope = Scope()
        for name, value in self.given.items():
            if name not in self.feed:
                scope.var(name).set(copied(value))
        return scope

    def gradients(self, executor: Executor, cotangents: Mapping[str, Any], slots: Sequence[str]) -> dict[str, Any]:
        """Gradients of the inputs in `slots`, by the op's own gradient ops."""
        wanted = [n for slot in slots for n, _ in self.bound[slot]]
        program = self.program.clone()
        block = program.global_block()
        for name, value in cotangents.items():
            lod_level, kind = len(getattr(value, "lod", ())), kind_of(value)
            block.create_var(grad_name(name), type=kind, dtype=value.dtype, shape=value.shape, lod_level=lod_level)
        for desc in grad_op_descs(self.info, self.op, [n for n in self.given if n not in wanted]):
            _append_gradient_op(block, desc)
        feed = dict(self.feed) | {grad_name(n): v for n, v in cotangents.items()}
        fetch = [grad_name(n) for n in wanted]
        values = executor.run(program, feed, fetch, self.scope(), return_numpy=False)
        # that of a sparse tensor has its pattern
        arrays = [v.to_dense() if isinstance(v, SelectedRows) else elements(v) for v in values]
        return dict(zip(wanted, arrays, strict=True))


def _append_gradient_op(block: BlockDesc, desc: OpDesc) -> None:
    for slot, names in list(desc.inputs.items()):
        # an output without a cotangent (an integer one) has no gradient
        desc.inputs[slot] = [n for n in names if block.has_var(n)]
    for name in desc.output_arg_names():
        if name != EMPTY_VAR:
            block.create_var(name)
    block.append_op(desc)


def build(case: OpCase, inputs: Mapping[str, Any]) -> Built:
    """The program of a case with these inputs. Raises DefinitionError when it names a slot that the op lacks."""
    info = default_manager().op_info(case.op)
    proto = info.proto
    _check_slots(case, inputs, proto)
    program = Program()
    block = program.global_block()
    bound = {slot: _named(slot, value) for slot, value in inputs.items()}
    given = dict(itertools.chain.from_iterable(bound.values()))
    for name, value in given.items():
        _declare(block, name, value)
    results = {slot: _named(slot, value) for slot, value in case.outputs.items()}
    slots = _output_names(results, proto)
    for name in itertools.chain.from_iterable(slots.values()):
        block.create_var(name)
    op = block.append_op(OpDesc(case.op, _names(bound), slots, case.attrs, _attr_types(case, proto)))
    infer_op(op, block, info)
    # what an op keeps for its own gradient (an intermediate output) is no result that a loss may read
    read_by_loss = case.loss or [
        slot for slot in slots if not (proto.outputs[slot].intermediate or proto.outputs[slot].stop_gradient)
    ]
    outputs = [name for slot in slots if slot in read_by_loss for name in slots[slot]]
    compared = [pair for pair in itertools.chain.from_iterable(results.values()) if pair[1] is not None]
    return Built(
        info, program, op, bound, given, outputs, fetch=[n for n, _ in compared], expected=[v for _, v in compared]
    )


def _attr_types(case: OpCase, proto: OpProto) -> dict[str, AttrType]:
    return {name: proto.attrs[name].type for name in case.attrs if name in proto.attrs}


def _names(pairs: Mapping[str, list[tuple[str, Any]]]) -> dict[str, list[str]]:
    return {slot: [name for name, _ in found] for slot, found in pairs.items()}


def _output_names(results: Mapping[str, list[tuple[str, Any]]], proto: OpProto) -> dict[str, list[str]]:
    """Variables of the outputs: those that the case has, and those that the op always has."""
    always = {slot: [f"{slot}_0"] for slot, p in proto.outputs.items() if not p.dispensable and not p.duplicable}
    named = _names(results)
    return named | {slot: names for slot, names in always.items() if slot not in named}


def _check_slots(case: OpCase, inputs: Mapping[str, Any], proto: OpProto) -> None:
    unknown = [s for s in inputs if s not in proto.inputs] + [
        s for s in (*case.outputs, *case.loss) if s not in proto.outputs
    ]
    if unknown:
        raise DefinitionError(
            f"{case.id}: {', '.join(unknown)} is no slot of op {case.op}; inputs are {', '.join(proto.inputs)}, "
            f"outputs are {', '.join(proto.outputs)}"
        )


def _declare(block: BlockDesc, name: str, value: Any) -> None:
    if isinstance(value, LoDTensorArray):
        dtype = next((t.dtype for t in value if t is not None), None)
        block.create_var(name, type=VarType.LOD_TENSOR_ARRAY, dtype=dtype, persistable=True)
        return
    block.create_var(
        name,
        type=KINDS[type(value)],
        dtype=value.dtype,
        shape=value.shape,
        lod_level=len(getattr(value, "lod", [])),
        persistable=not isinstance(value, LoDTensor | SparseTensor),
    )


def _named(slot: str, value: Any) -> list[tuple[str, Any]]:
    items = value if isinstance(value, list) and not isinstance(value, LoDTensorArray) else [value]
    return [(f"{slot}_{i}", as_value(v)) for i, v in enumerate(items)]


def random_like(array: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Normal numbers in the shape of an array, complex where it is."""
    drawn = rng.standard_normal(array.shape)
    return drawn + 1j * rng.standard_normal(array.shape) if array.dtype.kind == "c" else drawn


def inner(a: np.ndarray, b: np.ndarray) -> float:
    """The real part of sum(conj(a) * b), by which complex numbers are pairs of real ones."""
    return float((a.conj() * b).sum().real)
