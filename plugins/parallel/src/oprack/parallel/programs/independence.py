"""Whether a program treats the entries of a batch one by one, proved by the ops' rules of splitting.

A row of an output depends on the same row of the inputs alone where every op on the way may be computed on parts of the
batch: split(0) goes from the inputs through the ops' signatures to the outputs, and nothing on the way is a sum over
parts. What an op without a rule does to rows nobody knows, so nothing is proved of what it writes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from oprack.desc import BlockDesc, OpDesc, ProgramDesc, VarDesc
from oprack.errors import OprackError
from oprack.ir.passes import optimize, registered_passes
from oprack.op.desc_rules import infer_op
from oprack.op.info import OpInfo
from oprack.op.sbp import Sbp, SbpContext, Signature, broadcast, split
from oprack.packs.manager import default_manager
from oprack.parallel.programs.facts import Argument, arguments, declared_attrs
from oprack.parallel.programs.sizes import Sizes
from oprack.program import Program
from oprack.python.records import dataclass
from oprack.tensor import Scope

_SIZES = ((101, 7), (103, 5))
"""(entries, rows of each sequence) of the batches by which shapes are known: sizes that dims of models hardly have."""


@dataclass(frozen=True, slots=True)
class _Lies:
    """How the batch lies in a variable.

    Attributes:
        sbp: broadcast for what does not depend on the inputs, split(d) where dim d has the entries.
        by_rows: Whether that dim has a row for each row of the sequences, not for each entry.
        unproved: Why nothing is known of it; "" otherwise.
    """

    sbp: Sbp = broadcast
    by_rows: bool = False
    unproved: str = ""


def why_rows_may_depend(
    program: Program, inputs: Sequence[str], outputs: Sequence[str], dims: Mapping[str, Sequence[int]] | None = None
) -> str:
    """Why the entries of a batch may depend on each other, as far as rules of splitting tell.

    Args:
        program: A program for inference; it is not changed.
        inputs: What is fed; the first dim of each counts entries, or rows of sequences where it has LoD.
        outputs: What is fetched.
        dims: Sizes that were fed, by input; they are taken for open dims after the first.

    Returns:
        The first reason, which names op, variable and pack; "" when it is proved that an entry of each output depends
        on that entry of the inputs alone.
    """
    desc, constants = _simplified(program.desc, inputs, outputs, dims or {})
    if len(desc.blocks) > 1:
        return "the program has loops or branches, of which no rule says whether entries depend on each other"
    for entries, length in _SIZES:
        proof = _Proof(desc.clone().blocks[0], constants, entries, length)
        reason = proof.run(inputs, outputs)
        if reason:
            return reason
    return ""


def _simplified(
    desc: ProgramDesc, inputs: Iterable[str], outputs: Iterable[str], dims: Mapping[str, Sequence[int]]
) -> tuple[ProgramDesc, Scope]:
    """The program for inputs of some sizes, with what is known before a run folded; and the values that are known.

    Parameters have no values here, so that nothing is computed from them.
    """
    desc = desc.clone()
    for name in inputs:
        var = desc.blocks[0].var(name)
        sizes = tuple(dims.get(name, ()))
        shape = var.shape or ()
        sizes = sizes if len(sizes) == len(shape) else shape
        var.shape = (-1, *[n if d < 0 else d for d, n in zip(shape[1:], sizes[1:], strict=True)])
        var.need_check_feed = True
    passes = [p for p in registered_passes() if p.rank[0] == 0 and not (p.place or p.library)]
    constants = Scope()
    return optimize(desc, constants, keep=outputs, passes=passes).program, constants


class _Proof:
    """One walk over the ops of a block, with a batch of so many entries."""

    def __init__(self, block: BlockDesc, constants: Scope, entries: int, length: int) -> None:
        self.block, self.entries, self.length = block, entries, length
        self.manager = default_manager()
        self.known: dict[str, _Lies] = {}
        self.read: set[str] = set()  # what an op reads, or is fetched
        self.sizes = Sizes(block, constants)

    def run(self, inputs: Sequence[str], outputs: Sequence[str]) -> str:
        self.read = {*outputs, *(n for op in self.block.ops if op.type != "fetch" for n in op.input_arg_names())}
        self.read |= {name for op in self.block.ops for name in _attribute_vars(op)}
        for name in inputs:
            var = self.block.var(name)
            by_rows = bool(var.lod_level)
            var.shape = (self._rows(by_rows), *(var.shape or ())[1:])
            self.known[name] = _Lies(split(0), by_rows)
        for op in self.block.ops:
            if op.type not in ("feed", "fetch"):
                self._step(op)
        for name in outputs:
            lies = self.known.get(name, _Lies())
            if lies.unproved:
                return lies.unproved
            if lies.sbp != split(0):
                where = "in no dim" if lies.sbp == broadcast else f"in dim {lies.sbp.dim}"
                return f"output {name!r} has the entries of a batch {where}; expected them in the first"
        return ""

    def _rows(self, by_rows: bool) -> int:
        return self.entries * (self.length if by_rows else 1)

    def _step(self, op: OpDesc) -> None:
        """Find how the batch lies in what an op writes."""
        ins, outs = arguments(op.inputs), arguments(op.outputs)
        before = {name: self.known.get(name, _Lies()) for name in (*op.input_arg_names(), *_attribute_vars(op))}
        whole = all(lies.sbp == broadcast for lies in before.values())
        info = self.manager.op_info(op.type)
        numbers = {slot for slot, _, name in ins if before[name].unproved and name in self.sizes.known}
        unproved = next(
            (before[n].unproved for slot, _, n in ins if before[n].unproved and slot not in numbers), ""
        ) or self._shapes(op, info, whole and not numbers)
        if unproved:
            self.known.update({name: _Lies(unproved=unproved) for _, _, name in outs})
        elif self._numbers(op, info, ins, before):
            for _, _, name in outs:
                numbers_of = self.sizes.known.get(name)
                varies = numbers_of is None or numbers_of.varies
                self.known[name] = _Lies(unproved=self._of_size(op, name) if varies else "")
        elif whole and not numbers:
            self.known.update({name: _Lies() for _, _, name in outs})
        else:
            self._write(op, info, ins, outs, before, numbers)

    def _shapes(self, op: OpDesc, info: OpInfo, whole: bool) -> str:
        """Infer the shapes of what an op writes; returns why they are not known, where that matters."""
        try:
            infer_op(op, self.block, info, values=self.sizes.values(self.entries))
        except OprackError as error:
            return "" if whole else f"the shapes of op {op.type} are not known: {str(error)[:200]}"
        if any(self.known.get(name, _Lies()).by_rows for name in op.input_arg_names()):
            for name in op.output_arg_names():  # a row for each row, or for each sequence
                var = self.block.find_var_recursive(name)
                if var is not None and var.shape and var.shape[0] < 0:
                    var.shape = (self._rows(bool(var.lod_level)), *var.shape[1:])
        return ""

    def _numbers(self, op: OpDesc, info: OpInfo, ins: Sequence[Argument], before: Mapping[str, _Lies]) -> bool:
        """Whether an op makes numbers of sizes, which are known then."""
        lies = before[ins[0][2]] if ins else _Lies()
        if lies.sbp.kind != "P" and self.sizes.dims(op, lies.sbp.dim, self.entries):
            return True
        return self.sizes.compute(op, info)

    def _of_size(self, op: OpDesc, name: str) -> str:
        return (
            f"{name!r}, which op {op.type} writes, holds the size of the batch, which is another one for joined entries"
        )

    def _write(
        self,
        op: OpDesc,
        info: OpInfo,
        ins: Sequence[Argument],
        outs: Sequence[Argument],
        before: Mapping[str, _Lies],
        numbers: Collection[str],
    ) -> None:
        """What an op writes that reads the batch. numbers: input slots with numbers that depend on its size."""
        signature = self._signature(op, info, ins, outs, before, numbers)
        by_rows = any(lies.by_rows for lies in before.values())
        of_sequences = signature is not None and signature.by_sequence is not None
        for slot, _, name in outs:
            sbp = broadcast if signature is None else signature.outputs.get(slot, broadcast)
            scratch = info.proto.outputs[slot].intermediate
            var = self.block.find_var_recursive(name)
            if signature is None or sbp.kind == "P" or var is None or (scratch and of_sequences):
                self.known[name] = _Lies(unproved=self._reason(op, info, slot, name, before))
                continue
            if of_sequences:
                by_rows = bool(var.lod_level)
            self.known[name] = _Lies(sbp, by_rows and sbp != broadcast)

    def _signature(
        self,
        op: OpDesc,
        info: OpInfo,
        ins: Sequence[Argument],
        outs: Sequence[Argument],
        before: Mapping[str, _Lies],
        numbers: Collection[str],
    ) -> Signature | None:
        """The signature of the op for its inputs as they lie; None when no rule gives one."""
        if any(before[name] != _Lies() for name in _attribute_vars(op)):
            return None  # an attribute's value depends on the batch
        variables = {name: self.block.find_var_recursive(name) for _, _, name in (*ins, *outs)}
        scratch = {n for slot, _, n in outs if info.proto.outputs[slot].intermediate or n not in self.read}
        if info.sbp is None or not all(self._sized(v) for name, v in variables.items() if name not in scratch):
            return None
        # A rule whose signatures say which attribute has the sizes of an output may be asked without the tensor that
        # has them in its place. An op may leave an output alone that nobody reads, as dropout its mask when it tests.
        written = [(slot, number, name) for slot, number, name in outs if name in self.read]
        sized = {slot for slot, _, name in ins if name in self.sizes.known}
        attrs = dict(info.checker.check(declared_attrs(op, info), op.var_attrs())) if info.checker else dict(op.attrs)
        asked: list[set[str]] = ([] if numbers else [set()]) + ([sized] if sized else [])
        for left_out in asked:
            dims: dict[str, list[Any]] = {}
            for slot, _, name in (*(i for i in ins if i[0] not in left_out), *written):
                var = variables[name]
                dims.setdefault(slot, []).append(None if var is None else var.shape)
            found: list[Signature] = info.sbp(SbpContext(op.type, attrs, dims))
            for signature in found:
                if signature.random and not attrs.get("is_test"):
                    continue  # what it draws for an entry depends on those before it
                if (signature.sizes or not left_out) and self._fits(signature, ins, outs, before, left_out, scratch):
                    return signature
        return None

    def _fits(
        self,
        signature: Signature,
        ins: Sequence[Argument],
        outs: Sequence[Argument],
        before: Mapping[str, _Lies],
        left_out: Collection[str],
        scratch: Collection[str],
    ) -> bool:
        """Whether inputs lie as a signature wants them, and nothing but the batch is split."""
        if signature.via or signature.shared % self.entries:
            return False
        kinds = set()
        for slot, _, name in ins:
            if slot in left_out:
                continue
            lies = before[name]
            if lies.unproved or lies.sbp != signature.inputs.get(slot, broadcast):
                return False
            if lies.sbp != broadcast:
                per_sequence = signature.by_sequence is not None and slot in signature.by_sequence
                kinds.add(lies.by_rows != per_sequence)
        if len(kinds) > 1 or (signature.by_sequence is not None and kinds != {True}):
            return False
        # of copies whose number is the size of the batch each entry has some
        return bool(kinds) or all(
            sbp.kind == "S" and (self.block.var(name).shape or ())[sbp.dim] % self.entries == 0
            for slot, _, name in outs
            if name not in scratch
            for sbp in (signature.outputs.get(slot, broadcast),)
        )

    @staticmethod
    def _sized(var: VarDesc | None) -> bool:
        """Whether all dims of a variable are known."""
        return var is not None and var.shape is not None and all(d >= 0 for d in var.shape)

    def _reason(self, op: OpDesc, info: OpInfo, slot: str, name: str, before: Mapping[str, _Lies]) -> str:
        of_size = next((lies.unproved for lies in before.values() if lies.unproved), "")
        if of_size:
            return f"{of_size}; op {op.type} (pack {info.pack}) computes with it"
        lies = [f"{n!r} {before[n].sbp!r}" for n in op.input_arg_names() if n in before and before[n].sbp != broadcast]
        where = f"output {slot} ({name!r}) of op {op.type} (pack {info.pack})"
        if info.sbp is None:
            return f"{where} is not proved to keep entries of a batch apart: the op has no rule of splitting (`sbp`)"
        return f"{where} may mix entries of a batch: its rule of splitting has no way for inputs {', '.join(lies)}"


def _attribute_vars(op: OpDesc) -> list[str]:
    """Variables that hold attributes of an op."""
    return [n for names in op.var_attrs().values() for n in names]
