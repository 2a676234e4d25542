"""to_program: captures a function of tensors as a program, by calling it once with Variables."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from oprack.eager_tensor import Tensor
from oprack.errors import InvalidArgumentError, UnimplementedError
from oprack.interpreter.modes import static_mode
from oprack.interpreter.symbol import current_capture, symbol
from oprack.layers import unique_name
from oprack.layers.framework import program_guard
from oprack.layers.inputs import data
from oprack.layers.variable import Variable
from oprack.nn.parameter import Parameter
from oprack.program import ParameterInfo, Program
from oprack.tensor import Scope
from oprack.tensor.kinds import KINDS
from oprack.types import VarType


@dataclass(frozen=True)
class InputSpec:
    """An input of a function that is captured.

    Attributes:
        shape: Its sizes; None or -1 for dims that vary.
        dtype: Its dtype.
        name: The name of its variable; None: "x0", "x1" and so on, by place.
        lod_level: Number of LoD levels.
        kind: The kind of variable.
    """

    shape: Sequence[int | None]
    dtype: str = "float32"
    name: str | None = None
    lod_level: int = 0
    kind: VarType = VarType.LOD_TENSOR

    @classmethod
    def of(cls, value: Any) -> InputSpec:
        """The spec of a tensor, or the spec itself.

        Raises:
            InvalidArgumentError: It is neither.
        """
        if isinstance(value, InputSpec):
            return value
        if isinstance(value, Tensor) and not value.is_sparse:
            return cls(value.shape, str(value.dtype), value.name, len(value._lod), KINDS[value._meta.container])
        raise InvalidArgumentError(f"{value!r} is no spec of an input; expected an InputSpec or a tensor")


class TensorCapture:
    """Makes each tensor that a function refers to a variable of its program, once; their values go into a scope.

    Args:
        program: The program.
        on_ranks: Whether global tensors may be among them. These get no values, since no rank has the whole.
    """

    def __init__(self, program: Program, on_ranks: bool = False) -> None:
        self.program, self.scope, self._on_ranks = program, Scope(), on_ranks
        self.tensors: dict[str, Tensor] = {}
        self.owned: set[str] = set()
        self.dims: dict[tuple[str, int], Any] = {}
        self._variables: dict[int, Variable] = {}

    def variable(self, tensor: Tensor) -> Variable:
        """The persistable variable that stands for a tensor; a Parameter becomes a parameter of the program."""
        variable = self._variables.get(id(tensor))
        if variable is None:
            if not self._on_ranks:
                require_local(tensor, "oprack.to_program")
            name = tensor.name or unique_name.generate("constant")
            if name in self.tensors or self.program.global_block().has_var(name):
                name = unique_name.generate(f"{name}.copy")
            block = self.program.global_block()
            is_parameter = isinstance(tensor, Parameter)
            desc = block.create_var(
                name,
                dtype=tensor.dtype,
                shape=tensor.shape,
                persistable=True,
                is_parameter=is_parameter,
                stop_gradient=not tensor.requires_grad,
            )
            if isinstance(tensor, Parameter):
                attr = tensor.attr
                self.program.parameters[name] = ParameterInfo(
                    attr.learning_rate, attr.regularizer, attr.need_clip, attr.initializer
                )
            variable = self._variables[id(tensor)] = symbol(Variable(self.program, block, desc))
            self.tensors[name] = tensor
            if tensor._meta.layout is None:
                self.scope.var(name).set(tensor.value)
        return variable


@dataclass
class ExportedProgram:
    """A function as a program. `oprack.io.save_inference_model(path, t.program, t.feed_names, t.fetch_names, t.scope)`
    saves it.

    Attributes:
        program: The program.
        feed_names: Names of its inputs.
        fetch_names: Names of its outputs.
        scope: Holds the values of the tensors that the function refers to.
        tensors: These tensors, by the names of their variables.
        structure: The result of the function, with names in place of tensors.
        owned: Variables that in an eager call have memory of their own, although an op may give them as views.
    """

    program: Program
    feed_names: list[str]
    fetch_names: list[str]
    scope: Scope
    tensors: dict[str, Tensor]
    structure: Any
    owned: set[str]

    def refresh(self) -> None:
        """Set the variables in the scope to the current values of the tensors."""
        for name, tensor in self.tensors.items():
            self.scope.var(name).set(tensor.value)


def to_program(function: Callable[..., Any], specs: Sequence[Any], *, on_ranks: bool = False) -> ExportedProgram:
    """Capture a function as a program, by calling it with Variables.

    The function, or Module, may use oprack.functional, operators and methods of tensors. Its Python code runs once, so
    the program has the branches and loops of this one call. Tensors and parameters that the function refers to become
    persistable variables. The size of a dim that is None in a spec is a number of the run: see docs/how_to/jit.md.

    Args:
        function: A function of tensors, or a Module.
        specs: An InputSpec, or a tensor like the input, for each argument.
        on_ranks: Whether the function may refer to global tensors, of which the program has the whole shapes.

    Returns:
        The program, the names of its inputs and outputs, and a scope with what the function refers to.

    Raises:
        InvalidArgumentError: The function returns anything but tensors in lists, tuples and dicts.
    """
    program, startup = Program(), Program()
    captured = TensorCapture(program, on_ranks)
    input_specs = [InputSpec.of(s) for s in specs]
    token = current_capture.set(captured)
    try:
        with unique_name.guard(), program_guard(program, startup), static_mode():
            inputs = []
            for i, spec in enumerate(input_specs):
                shape = [None if d is None or d < 0 else d for d in spec.shape]
                var = data(spec.name or f"x{i}", shape, spec.dtype, lod_level=spec.lod_level)
                var.desc.type = spec.kind
                inputs.append(symbol(var))
            result = function(*inputs)
            fetches: dict[str, None] = {}
            structure = _names(result, captured, fetches)
    finally:
        current_capture.reset(token)
    return ExportedProgram(
        program, [v.name for v in inputs], list(fetches), captured.scope, captured.tensors, structure, captured.owned
    )


def require_local(tensor: Tensor, owner: str) -> None:
    """Refuse a tensor that lies on several ranks.

    Args:
        tensor: The tensor.
        owner: What is to be captured, for the message.

    Raises:
        UnimplementedError: It is a global tensor.
    """
    if tensor._meta.layout is not None:
        raise UnimplementedError(
            f"{owner}: {tensor.describe()} is a global tensor, and programs are captured of tensors of one process. "
            "Call the function itself, which computes on all ranks; or write a program of plain tensors and give each "
            "rank its part of it by oprack.parallel.distribute"
        )


def _names(result: Any, captured: TensorCapture, fetches: dict[str, None]) -> Any:
    """The result with names in place of Variables."""
    if isinstance(result, Tensor):
        result = captured.variable(result)
    if isinstance(result, Variable):
        fetches[result.name] = None
        return Name(result.name)
    if isinstance(result, dict):
        return {k: _names(v, captured, fetches) for k, v in result.items()}
    if isinstance(result, list | tuple):
        items = [_names(v, captured, fetches) for v in result]
        return items if isinstance(result, list) else tuple(items)
    raise InvalidArgumentError(
        f"to_program: the function returned {result!r} ({type(result).__name__}); expected tensors, in lists, tuples "
        "and dicts"
    )


class Name(str):
    """The name of a variable among what a function returns."""

    __slots__ = ()
