"""Module: a program, of Paddle or captured of a layer of a pack, as a module of torch."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from oprack.autograd.backward_rule import expr_of_op
from oprack.capture.to_program import ExportedProgram
from oprack.desc import OpDesc
from oprack.errors import InvalidArgumentError, NotFoundError, UnimplementedError
from oprack.io.inference_model import load_inference_model
from oprack.program import Program
from oprack.tensor import LoDTensor, Scope
from oprack.types import EMPTY_VAR, AttrType

from oprack_torch.arrays import torch_of
from oprack_torch.library import apply
from oprack_torch.sequences import Item, Sequences, values_of

_BLOCKS = (AttrType.BLOCK, AttrType.BLOCKS)


class Module(torch.nn.Module):
    """A program whose ops are called one by one as ops of torch, so that it can be trained, compiled and exported.

    Its floating persistable variables are parameters, all others buffers, with "_" in place of the dots of their names.
    Inputs and outputs are tensors, or Sequences where they have LoD. What the program says of training holds, whatever
    `train` and `eval` say: a program that was saved for inference has no dropout.

    Args:
        model: `<prefix>` or directory of a saved model, as `oprack.io.load_inference_model` takes it, or its .pdmodel
            file; or what `oprack.to_program` captured of a module or a function.
        outputs: Names of the variables that a call returns; None: what the program was saved with. Ops behind them are
            left out, and training may begin at a variable before, say, a decoder without gradient.

    Attributes:
        input_names: Names of its inputs.
        output_names: Names of its outputs.

    Raises:
        NotFoundError: There is no such model, or no such variable.
        UnimplementedError: The program has loops or branches.
        OprackError: As `oprack.io.load_inference_model`.
    """

    def __init__(self, model: str | os.PathLike[str] | ExportedProgram, outputs: Sequence[str] | None = None) -> None:
        super().__init__()
        if isinstance(model, ExportedProgram):
            model.refresh()
            program, scope, feeds, fetches = model.program, model.scope, model.feed_names, model.fetch_names
        else:
            scope = Scope()
            path = os.fspath(model)
            loaded = load_inference_model(path.removesuffix(".pdmodel"), scope)
            program, feeds, fetches = loaded.program, loaded.feed_names, loaded.fetch_names
        self.input_names, self.output_names = list(feeds), list(fetches if outputs is None else outputs)
        self._ops = _needed(program, self.output_names)
        self._state = dict[str, str]()
        self._take_state(program, scope)

    def _take_state(self, program: Program, scope: Scope) -> None:
        read = {n for op in self._ops for n in (*op.input_arg_names(), *op.output_arg_names())}
        block = program.global_block()
        for name, var in block.vars.items():
            held = scope.find_var(name) if var.persistable and name in read else None
            if held is None or held.value is None:
                continue
            value = held.value
            if not isinstance(value, LoDTensor):
                raise UnimplementedError(
                    f"variable {name!r} of the program holds a {type(value).__name__}; expected dense parameters"
                )
            tensor = torch_of(np.array(value.array))
            attribute = "".join(c if c.isalnum() or c == "_" else "_" for c in name)
            while hasattr(self, attribute):
                attribute += "_"
            self._state[name] = attribute
            if tensor.is_floating_point() and not _is_written(self._ops, name):
                self.register_parameter(attribute, torch.nn.Parameter(tensor))
            else:
                self.register_buffer(attribute, tensor)

    def variable(self, name: str) -> torch.Tensor:
        """The parameter or buffer of a persistable variable.

        Args:
            name: The variable, as the program spells it.

        Returns:
            It.

        Raises:
            NotFoundError: The program has no such variable with a value.
        """
        if name not in self._state:
            raise NotFoundError(f"the program has no parameter {name!r}; it has {', '.join(self._state)}")
        found: torch.Tensor = getattr(self, self._state[name])
        return found

    def forward(self, *inputs: Item) -> Any:
        """Run the program.

        Args:
            inputs: A tensor, nested tensor or Sequences for each of `input_names`.

        Returns:
            The output, or a list of all.

        Raises:
            InvalidArgumentError: There are more inputs or fewer.
        """
        if len(inputs) != len(self.input_names):
            raise InvalidArgumentError(
                f"the module was called with {len(inputs)} inputs; expected {', '.join(self.input_names)}"
            )
        values: dict[str, Item] = {n: getattr(self, attribute) for n, attribute in self._state.items()}
        for name, x in zip(self.input_names, inputs, strict=True):
            values[name] = Sequences.from_nested(x) if isinstance(x, torch.Tensor) and x.is_nested else x
        for op in self._ops:
            self._run(op, values)
        found = [values[n] for n in self.output_names]
        return found[0] if len(found) == 1 else found

    def _run(self, op: OpDesc, values: dict[str, Item]) -> None:
        expr = expr_of_op(op, lambda name: values.get(name) is None)
        args = [values[name] for slot, _ in expr.inputs for name in op.inputs[slot]]
        made = [name for slot, _ in expr.outputs for name in op.outputs[slot]]
        for name, y in zip(made, apply(expr, args), strict=True):
            values[name] = y
            if name in self._state and y is not None:  # such as running means
                with torch.no_grad():
                    getattr(self, self._state[name]).copy_(values_of(y))

    def extra_repr(self) -> str:
        """What print says of it."""
        return f"{', '.join(self.input_names)} -> {', '.join(self.output_names)}, {len(self._ops)} ops"


def _is_written(ops: Sequence[OpDesc], name: str) -> bool:
    return any(name in op.output_arg_names() for op in ops)


def _needed(program: Program, outputs: Sequence[str]) -> list[OpDesc]:
    """The ops of block 0 that these variables are computed by, in order."""
    block = program.global_block()
    wanted, found = set(outputs), list[OpDesc]()
    if unknown := [n for n in outputs if not block.has_var(n)]:
        raise NotFoundError(f"the program has no variable {', '.join(unknown)}; expected names of its variables")
    for op in reversed(block.ops):
        if op.type in ("feed", "fetch") or not wanted & set(op.output_arg_names()):
            continue
        if any(t in _BLOCKS for t in op.attr_types.values()):
            raise UnimplementedError(
                f"op {op.type} of the program runs a block, which oprack_torch.Module does not do; pass outputs= for "
                "the part of the program before it, or run the program with oprack.inference"
            )
        op = op.clone()
        if op.attrs.get("is_sparse"):  # torch is given gradients that are dense alone
            op.attrs["is_sparse"] = False
        found.append(op)
        wanted |= set(op.input_arg_names()) - {EMPTY_VAR}
    return found[::-1]
