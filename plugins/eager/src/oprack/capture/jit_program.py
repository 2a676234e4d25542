"""JitProgram: a captured function at a place, and the program of its gradients, as functions of values."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from oprack.autodiff import gradients
from oprack.autograd.starting_gradients import zero_gradient
from oprack.autograd.unchanged import check_inputs, check_outputs
from oprack.cache import Cache
from oprack.capture.guards import Guards, naming
from oprack.capture.memory import Sharing
from oprack.capture.to_program import ExportedProgram, Name
from oprack.desc import BlockDesc, OpDesc, VarDesc
from oprack.desc.reach import reads, writes
from oprack.eager_tensor import Edge, Node, lend, new_tensor, share_memory
from oprack.eager_tensor.devices import executor
from oprack.eager_tensor.meta import TensorMeta, meta_of_value, tensor_meta
from oprack.errors import UnimplementedError
from oprack.functional.tensor import Tensor
from oprack.interpreter.modes import Mode
from oprack.interpreter.wrappers import FiniteCheck
from oprack.packs.manager import default_manager
from oprack.program import Program
from oprack.runtime.checks import Checks
from oprack.runtime.plan.codegen import generated_function
from oprack.runtime.prepared import program_bytes
from oprack.runtime.prepared_function import PreparedFunction
from oprack.runtime.run_context import RandomState
from oprack.tensor import LoDTensor, Place, Scope
from oprack.types import COMPLEX, FLOATS, GRAD_SUFFIX, HALF_FLOATS, dtype_name

MISSED: Any = type("missed", (), {})()
"""What a call returns for which a program does not serve any more."""
_FORMS = 8  # of the tensors for which gradients are recorded


class JitProgram:
    """A captured function at a place, and the program of its gradients, which reads forward values that were saved.

    Each call has its values to itself, so threads may share it.

    Args:
        exported: The function as a program.
        guards: What the function read beside tensors.
        place: Where it runs.
        wrt: Names of the inputs and captured tensors that require gradients.
        name: The name of the function, for messages.
        mode: The mode in which it was captured.
        metas: Those of its arguments.
        of_one_shape: Whether each argument has the same shape in all calls.

    Attributes:
        call: `call(guarded, *arguments)` is what the function returns for these tensors, with gradients recorded where
            they are wanted; MISSED if `guarded` and what the function read is not as it was when it was captured.
    """

    def __init__(
        self,
        exported: ExportedProgram,
        guards: Guards,
        place: Place,
        wrt: Sequence[str],
        name: str,
        mode: Mode,
        metas: Sequence[TensorMeta],
        of_one_shape: bool,
    ) -> None:
        self.exported, self.guards, self.place, self.wrt, self.name = exported, guards, place, list(wrt), name
        checks = Checks(nan_inf=FiniteCheck in mode.wrappers)
        self._executor = executor(place, deterministic=mode.deterministic, checks=checks)
        self._revision = self._executor.manager.revision
        self._feeds = exported.feed_names
        self._names, self._tensors = list(exported.tensors), list(exported.tensors.values())
        # What code reads of captured tensors beside values: dtypes, places, requires_grad, and shapes.
        self._metas = [t._meta.with_tracking for t in self._tensors]
        self.nbytes = program_bytes(exported.program.desc)  # for the budget of caches, with the gradients' program
        block = exported.program.global_block()
        written = {n for op in block.ops for n in op.output_arg_names()}
        self._changed = [n for n in [*self._names, *self._feeds] if n in written]  # such as running means
        # What is returned as it came is the caller's tensor itself, as in an eager call.
        given = {*self._feeds, *self._names}
        self._made = [n for n in exported.fetch_names if n not in given]
        self.targets: list[str] = []
        self.cotangents: list[str] = []
        self.kept: list[str] = []
        self.gradients: list[int | None] = []  # of `wrt`, among the results of the program of gradients
        self.read_again: list[str] = []  # by what records gradients
        self.mode = mode
        self.saved: list[str] = []
        self._backward: PreparedFunction | None = None
        read = self._write_backward(given | written) if self.wrt else set[str]()
        self._sharing = Sharing(block, place, given, self._made, exported.owned)
        self._set_checks(read)
        outputs = dict.fromkeys([*self._made, *(n for n in self.kept if n not in given), *self._changed])
        self._forward = self._function(exported.program, [*self._feeds, *self._names], list(outputs))
        # What the values of one call have in common with those of the next.
        self._form = 1 if of_one_shape and all([meta.bare for meta in (*metas, *self._metas)]) else None
        self.call = self._generated(metas)

    def __repr__(self) -> str:
        return f"<JitProgram of {self.name} at {self.place!r} in {self.mode!r}>"

    def _write_backward(self, values: set[str]) -> set[str]:
        """Append the gradient ops to a copy of the program; returns the names whose values they read."""
        block = self.exported.program.global_block()
        count = len(block.ops)
        self.targets = [n for n in self._made if _is_differentiable(v := block.var(n)) and not v.stop_gradient]
        if not self.targets:
            return set()  # no output has a gradient
        changed = [i for i, n in enumerate(self._feeds) if n in self._changed]
        if changed:
            raise UnimplementedError(
                f"{self.name}: it changes argument {changed[0]} in place and gradients are recorded; "
                "return the new values instead, or call the function itself"
            )
        joint, self.cotangents, names = _with_gradients(self.exported.program, self.targets, self.wrt)
        block = joint.global_block()
        _, read_again = _needed_for(block, [n for n in names if n is not None])
        self.read_again = [n for n in (*self._feeds, *self._names) if n in read_again]
        read = {n for op in block.ops[count:] for n in op.input_arg_names()}
        values_read = {n for op in block.ops[count:] for n in _values_read(op)}
        self.kept = sorted(n for n in read & values if n not in self.exported.tensors)
        # The forward program has run by then, and saves the values that the gradient ops read.
        block.ops = block.ops[count:]
        self.saved = [*(n for n in self._names if n in read), *self.kept]
        found = [n for n in dict.fromkeys(names) if n is not None]
        self.gradients = [None if n is None else found.index(n) for n in names]
        self._backward = self._function(joint, [*self.saved, *self.cotangents], found)
        self.nbytes += program_bytes(joint.desc)
        return values_read

    def _set_checks(self, read: set[str]) -> None:
        """Note which tensors and outputs may not change in place before the gradients are computed."""
        root = self._sharing.root
        memory = {root(n) for n in read}
        # What the program itself writes to, such as running means, has values of its own in each call.
        self._guarded = [n for n in self.read_again if n in memory and n not in self._changed]
        self._guarded_results = [n for n in self._made if n not in self.targets and root(n) in memory]
        self._needed = [i for i, n in enumerate(self.targets) if root(n) in memory]

    # Running ----------------------------------------------------------------------------------------------------------
    def _function(self, program: Program, inputs: Sequence[str], outputs: Sequence[str]) -> PreparedFunction:
        prepared = self._executor.prepare(program.desc)
        return PreparedFunction(self._executor, prepared, inputs, outputs, stateful=False)

    def _generated(self, metas: Sequence[TensorMeta]) -> Callable[..., Any]:
        """`call(guarded, a0, a1, ...)` of the arguments' tensors: what the function returns, or MISSED.

        In the code a is an argument, x the value of a tensor that is given, n its version; r is a value that the
        program gives, o the tensor around it; k is a value that was kept for the gradients, t a tensor that was given,
        y the gradient of an output, d one that is computed, gd the tensor around it.
        """
        names: dict[str, Any] = {"__name__": __name__, "MISSED": MISSED}
        named = naming(names)
        args = [f"a{i}" for i in range(len(self._feeds))]
        given = dict(zip(self._forward.inputs, [*args, *map(named, self._tensors)], strict=True))
        lines = [f"def call(guarded, {', '.join(args)}):", *self._reading(given, metas), *self._guarding(given, named)]
        lines += self._running(given, named)
        lines += [f"    return {_result_text(self.exported.structure, self._results(given), named)}"]
        if self._backward is not None:
            lines += self._differentiating(self._backward, named)
        source = "\n".join(lines) + "\n"
        call = generated_function(source, "call", f"jit of {self.name}", names)
        if self._backward is not None:
            names["rule"] = JitRule(self, names.pop("back"))
        return call

    def _reading(self, given: Mapping[str, str], metas: Sequence[TensorMeta]) -> Iterator[str]:
        """Values are read once, so that guards see what the program gets, and versions before values."""
        for i, ((n, tensor), meta) in enumerate(zip(given.items(), [*metas, *self._metas], strict=True)):
            if n in self.read_again and n not in self._changed:
                yield f"    n{i} = 0 if {tensor}._memory is None else {tensor}._version"
            yield f"    x{i} = {tensor}.{'_value' if meta.bare else 'value'}"

    def _guarding(self, given: Mapping[str, str], named: Callable[[Any], str]) -> Iterator[str]:
        conditions = [f"{named(self._executor.manager)}.revision == {self._revision}"]
        for i, (n, tensor, meta) in enumerate(zip(self._names, self._tensors, self._metas, strict=True)):
            conditions.append(f"{given[n]}._meta.with_tracking is {named(meta)}")
            if meta.container is LoDTensor:
                conditions.append(f"x{len(self._feeds) + i}.shape == {tuple(tensor._value.shape)}")
        return self.guards.lines(conditions, named)

    def _results(self, given: Mapping[str, str]) -> dict[str, str]:
        """The text of each result: what is returned as it came is the caller's tensor itself, as in an eager call."""
        return {**given, **{n: f"o{k}" for k, n in enumerate(self._made)}}

    def _running(self, given: Mapping[str, str], named: Callable[[Any], str]) -> Iterator[str]:
        """Run the program, and make tensors of what it gives."""
        results = self._results(given)
        values = {n: f"x{i}" for i, n in enumerate(given)} | {n: f"r{k}" for k, n in enumerate(self._forward.outputs)}
        made = [f"r{k}" for k in range(len(self._forward.outputs))]
        if self.exported.program.global_block().ops:
            call = f"{named(self._forward.__call__)}(({_listed([f'x{i}' for i in range(len(given))])}), {self._form})"
            yield f"    {f'[{_listed(made)}] = ' if made else ''}{call}"
        for n in self._changed:
            yield f"    {given[n]}._overwrite({named(_array)}({values[n]}), None, {self.name!r})"
        edges = {}
        if self._backward is not None:
            yield f"    node = {named(Node)}()"
            yield "    node.rule = rule"
            yield f"    node.next = ({_listed(f'{given[n]}._node' for n in self.wrt)})"
            several = len(self.targets) > 1
            edges = {n: f"{named(Edge)}(node, {i})" if several else "node" for i, n in enumerate(self.targets)}
        for k, n in enumerate(self._made):
            if n in self._sharing.copies:
                yield f"    r{k} = {named(_on_own_memory)}(r{k})"
            yield from _wrapping(f"o{k}", f"r{k}", edges.get(n), named)
        for n, source in self._sharing.shares.items():
            yield f"    {named(share_memory)}({results[n]}, {results[source]})"
            if n in edges:
                yield f"    {named(lend)}({results[n]}._node, {results[n]}._memory)"
        if self._backward is not None:
            yield f"    node.saved = ({_listed(self._saving(given, results, values, named))})"

    def _saving(
        self,
        given: Mapping[str, str],
        results: Mapping[str, str],
        values: Mapping[str, str],
        named: Callable[[Any], str],
    ) -> Iterator[str]:
        """What the node keeps: values that gradients read, tensors with their versions, and forms of the outputs."""
        yield from (values[n] for n in self.saved)
        for i, n in enumerate(given):
            # What the call itself changes, such as running means, is as it was before.
            if n in self._changed and n in self.read_again:
                yield from (f"{named(_as_tensor)}(x{i})", "0")
            elif n in self.read_again:
                yield from (given[n], f"n{i}")
        for n in self._guarded_results:
            y = results[n]  # None: an op may leave an output unset
            yield from (y, f"0 if {y} is None else {y}._version")
        # One of several outputs may have no gradient, and then it is zeros.
        for n in self.targets if len(self.targets) > 1 else ():
            yield f"({results[n]}.shape, {results[n]}._meta)"

    def _differentiating(self, backward: PreparedFunction, named: Callable[[Any], str]) -> Iterator[str]:
        """`back(node, gradients, apply, plain)`: see Rule.quick."""
        kept, targets = [f"k{i}" for i in range(len(self.saved))], [f"y{i}" for i in range(len(self.targets))]
        guarded = [*self.read_again, *self._guarded_results]
        pairs = [(f"t{i}", f"n{i}") for i in range(len(guarded))]
        forms = [f"f{i}" for i in range(len(targets)) if len(targets) > 1]
        found = [f"d{i}" for i in range(len(backward.outputs))]
        yield "def back(node, gradients, apply, plain):"
        yield f"    [{_listed([*kept, *(text for pair in pairs for text in pair), *forms])}] = node.saved"
        yield f"    [{_listed(targets)}] = gradients"
        for n, (t, version) in zip(guarded, pairs, strict=True):
            if n in self._guarded or n in self._guarded_results:
                check = f"{named(check_inputs)}({self.name!r}, [({t}, {version})])"
                there = f"{t} is not None and " if n in self._guarded_results else ""
                yield f"    if {there}{t}._memory is not None and {t}._version != {version}: {check}"
        if self._needed:
            yield f"    if node.lent: {named(check_outputs)}(node, {self._needed})"
        for y, form in zip(targets, forms, strict=False):
            yield f"    if {y} is None: {y} = {named(zero_gradient)}(*{form})"
        for y in targets:
            yield f"    {y} = {y}._value if {y}._meta.bare else {y}.value"
        made = [k for n, k in zip(self.saved, kept, strict=True) if self._form is None or n in self._forward.outputs]
        yield f"    {_form_text([*made, *targets], named)}"
        yield f"    [{_listed(found)}] = {named(backward.__call__)}(({_listed([*kept, *targets])}), form)"
        for d in found:
            yield from _wrapping(f"g{d}", d, None, named)
        yield f"    return ({_listed('None' if at is None else f'g{found[at]}' for at in self.gradients)})"


class JitRule:
    """How the gradients of a jitted call are computed: by generated code, or recorded to be differentiated again.

    Recorded ones are a function of what the call was given and of the gradients that arrive. It is run as a captured
    one, with a program of gradients of its own, and computes the forward values anew, since gradients flow back through
    them as well.

    Args:
        of: The captured function.
        quick: See Rule.quick.
    """

    def __init__(self, of: JitProgram, quick: Callable[..., Sequence[Any]]) -> None:
        self.name, self.quick, self.outputs = of.name, quick, list(range(len(of.targets)))
        self._exported, self._guards, self._place, self._mode = of.exported, of.guards, of.place, of.mode
        self._targets, self._wrt, self._gradients = of.targets, of.wrt, of.gradients
        self._read, self._given_at = of.read_again, len(of.saved)
        self._programs = Cache(_FORMS)

    def run(
        self, node: Node, gradients: Sequence[Any], apply: Callable[..., Any], plain: bool, create_graph: bool
    ) -> Sequence[Any]:
        """The gradients of `wrt`, None where none flows; see Rule.run."""
        return self._recorded(node, gradients) if create_graph else self.quick(node, gradients, apply, plain)

    def __repr__(self) -> str:
        return f"<JitRule of {self.name} for {', '.join(self._wrt)}>"

    def _recorded(self, node: Node, cotangents: Sequence[Tensor | None]) -> list[Tensor | None]:
        pairs = node.saved[self._given_at :][: 2 * len(self._read)]
        given = pairs[::2]
        check_inputs(self.name, zip(given, pairs[1::2], strict=True))
        forms = node.saved[-len(cotangents) :]
        tensors = [*given, *(zero_gradient(*forms[k]) if g is None else g for k, g in enumerate(cotangents))]
        metas = tuple([x._meta.with_tracking for x in tensors])
        program: JitProgram | None = self._programs[metas]
        if program is None:
            program = self._programs[metas] = self._program(metas)
        found = program.call(False, *tensors)
        return [None if at is None else found[at] for at in self._gradients]

    def _program(self, metas: Sequence[TensorMeta]) -> JitProgram:
        joint, cotangents, names = _with_gradients(self._exported.program, self._targets, self._wrt)
        block = joint.global_block()
        given, found = [*self._read, *cotangents], [Name(n) for n in dict.fromkeys(names) if n is not None]
        _write_others(block, self._read)
        block.ops, _ = _needed_for(block, found)
        exported = ExportedProgram(joint, given, list(found), Scope(), {}, found, self._exported.owned)
        wrt = [n for n in given if n in self._wrt or n in cotangents]
        name = f"the gradient of {self.name}"
        program = JitProgram(exported, self._guards, self._place, wrt, name, self._mode, metas, of_one_shape=False)
        program._executor.random = _NoRandomState(self.name)
        return program


def _with_gradients(
    program: Program, targets: Sequence[str], wrt: Sequence[str]
) -> tuple[Program, list[str], list[str | None]]:
    """(a copy of a program with gradient ops, names of the gradients of the targets, which are given, and of `wrt`)."""
    joint = program.clone()
    block = joint.global_block()
    given = [f"{n}{GRAD_SUFFIX}@given" for n in targets]
    for name, like in zip(given, map(block.var, targets), strict=True):
        block.create_var(name, dtype=like.dtype, shape=like.shape, lod_level=like.lod_level)
    return joint, given, gradients(targets, wrt, given, block=block)


class _NoRandomState(RandomState):
    """Refuses to draw for a computation that repeats another one, which drew other numbers.

    Args:
        name: The function that is repeated.
    """

    def __init__(self, name: str) -> None:
        super().__init__()
        self._name = name

    def generator(self, op_key: str, seed: int = 0) -> np.random.Generator:
        if seed:
            return super().generator(op_key, seed)
        raise UnimplementedError(
            f"{self._name}: gradients of its gradients need its forward values once more, but it draws random numbers "
            f"(op {op_key}); give the op a seed, or call the function itself instead"
        )


def _needed_for(block: BlockDesc, targets: Collection[str]) -> tuple[list[OpDesc], set[str]]:
    """(the ops of a block that the targets depend on, all that these read)."""
    needed, ops = set(targets), list[OpDesc]()
    for op in reversed(block.ops):
        if not needed.isdisjoint(writes(op, block.program)):
            ops.append(op)
            needed.update(reads(op, block.program))
    return ops[::-1], needed


def _write_others(block: BlockDesc, given: Collection[str]) -> None:
    """Let ops that overwrite what is given write other variables, which later ops read: a function changes nothing."""
    current: dict[str, str] = {}
    for i, op in enumerate(block.ops):
        for slot, names in op.inputs.items():
            op.inputs[slot] = [current.get(n, n) for n in names]
        for slot, names in op.outputs.items():
            for n in names:
                if n in given:
                    like = block.var(n)
                    current[n] = f"{n}@{i}"
                    block.create_var(current[n], dtype=like.dtype, shape=like.shape, lod_level=like.lod_level)
            op.outputs[slot] = [current.get(n, n) for n in names]


def _values_read(op: OpDesc) -> list[str]:
    """The variables of which an op reads more than the shape."""
    unread = default_manager().op_info(op.type).no_need_buffer_vars
    return [n for slot, names in op.inputs.items() if slot not in unread for n in names]


def _array(value: Any) -> Any:
    return value.array if isinstance(value, LoDTensor) else value


def _on_own_memory(value: Any) -> Any:
    """The value, copied if it is a view: the result of an eager call has memory of its own."""
    if isinstance(value, LoDTensor) and not value.array.flags.owndata:
        return LoDTensor(value.array.copy(), value.lod, place=value.place, check=False)
    return value.copy() if isinstance(value, np.ndarray) and not value.flags.owndata else value


def _form_text(values: Sequence[str], named: Callable[[Any], str]) -> str:
    """The statement that sets `form` to that of these values, or to None if not all are bare arrays."""
    all_bare = " is ".join([f"type({v})" for v in values] + [named(np.ndarray)])
    return f"form = ({_listed(f'{v}.dtype, {v}.shape' for v in values)}) if {all_bare} else None"


def _wrapping(tensor: str, value: str, edge: str | None, named: Callable[[Any], str]) -> Iterator[str]:
    """The statements that wrap a value in a tensor, without a copy; `edge`: where its gradient goes."""
    recorded = ".with_grad" if edge else ""
    yield f"    if type({value}) is {named(np.ndarray)}:"
    yield f"        {tensor} = {named(Tensor)}()"
    yield f"        {tensor}._value, {tensor}._meta = {value}, {named(_METAS)}[{value}.dtype]{recorded}"
    yield f"        {tensor}._node = {edge}"
    yield f"    else: {tensor} = {named(_as_tensor)}({value}, {edge})"


def _listed(texts: Iterable[str]) -> str:
    return "".join(f"{text}, " for text in texts)


def _result_text(structure: Any, texts: Mapping[str, str], named: Callable[[Any], str]) -> str:
    """Code of what a function returns: lists, tuples and dicts with texts in place of names."""
    if isinstance(structure, Name):
        return texts[structure]
    if isinstance(structure, dict):
        return f"{{{_listed(f'{named(k)}: {_result_text(v, texts, named)}' for k, v in structure.items())}}}"
    items = _listed(_result_text(v, texts, named) for v in structure)
    return f"[{items}]" if isinstance(structure, list) else f"({items})"


def _is_differentiable(var: VarDesc) -> bool:
    """Whether a variable has a floating or complex dtype."""
    return var.dtype is not None and dtype_name(var.dtype) in FLOATS | HALF_FLOATS | COMPLEX


class _Metas(dict[Any, TensorMeta]):
    """Those of dense tensors on the CPU, by dtype."""

    def __missing__(self, dtype: Any) -> TensorMeta:
        return self.setdefault(dtype, tensor_meta(LoDTensor, dtype))


_METAS = _Metas()


def _as_tensor(value: Any, edge: Any = None) -> Tensor | None:
    """Wrap a value that a program computed in a tensor, without a copy; None stays None.

    Args:
        value: The value.
        edge: Where its gradient goes; None: it has none.
    """
    if value is None:
        return None
    if isinstance(value, LoDTensor):
        meta = meta_of_value(value.array, value.place, len(value.lod))
        tensor = new_tensor(value.array, meta, value.lod)
    else:
        tensor = new_tensor(value, meta_of_value(value))
    if edge is not None:
        tensor._meta, tensor._node = tensor._meta.with_grad, edge
    return tensor
