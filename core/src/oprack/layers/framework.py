"""The state of program building: the current programs, the name scope, and the role of appended ops; VariableHandle.

The default programs are those of the process; a guard holds for the thread (or task) that entered it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from oprack.autodiff.appender import OpRole
from oprack.desc import BlockDesc, VarDesc
from oprack.errors import InvalidArgumentError
from oprack.layers import unique_name
from oprack.program import Program
from oprack.types import VarType


class VariableHandle:
    """A variable of a block, as `append_op` takes it. Users get its subclass Variable, which has operators.

    Args:
        program: The program.
        block: The block that has the variable.
        desc: The variable's description.
    """

    __slots__ = ("__weakref__", "block", "desc", "program")

    def __init__(self, program: Program, block: BlockDesc, desc: VarDesc) -> None:
        self.program, self.block, self.desc = program, block, desc

    @property
    def name(self) -> str:
        return self.desc.name

    @property
    def shape(self) -> tuple[int, ...]:
        """Dims, -1 where each batch decides; () for a 0-D tensor, and when nothing is known."""
        return self.desc.shape or ()

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def dtype(self) -> str | None:
        """Name of the dtype, for example "float32"; None where the kind of variable has none."""
        return self.desc.dtype_name()

    @property
    def lod_level(self) -> int:
        return self.desc.lod_level

    @property
    def type(self) -> VarType:
        """LOD_TENSOR, SELECTED_ROWS, LOD_TENSOR_ARRAY ..."""
        return self.desc.type

    @property
    def persistable(self) -> bool:
        """Whether it lives on after a run, in the scope, and is saved."""
        return self.desc.persistable

    @persistable.setter
    def persistable(self, value: bool) -> None:
        self.desc.persistable = bool(value)

    @property
    def stop_gradient(self) -> bool:
        """Whether no gradient flows through it."""
        return self.desc.stop_gradient

    @stop_gradient.setter
    def stop_gradient(self, value: bool) -> None:
        self.desc.stop_gradient = bool(value)

    @property
    def is_parameter(self) -> bool:
        return self.desc.is_parameter

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.desc} in block {self.block.idx}>"


_DEFAULT_MAIN, _DEFAULT_STARTUP = Program(), Program()
# Context variables, so that a guard affects only the thread or task that entered it.
_main: ContextVar[Program] = ContextVar("oprack_main_program", default=_DEFAULT_MAIN)
_startup: ContextVar[Program] = ContextVar("oprack_startup_program", default=_DEFAULT_STARTUP)
_role: ContextVar[tuple[OpRole, tuple[str, ...]]] = ContextVar("oprack_op_role", default=(OpRole.FORWARD, ()))
_scope: ContextVar[str] = ContextVar("oprack_name_scope", default="/")


def default_main_program() -> Program:
    """The program that layers append to.

    Returns:
        The program of the innermost `program_guard`, or that of the process.
    """
    return _main.get()


def default_startup_program() -> Program:
    """The program that initializes parameters; run it once before the main program.

    Returns:
        The startup program of the innermost `program_guard`, or that of the process.
    """
    return _startup.get()


@contextmanager
def program_guard(main_program: Program, startup_program: Program | None = None) -> Iterator[None]:
    """Within a with block, append ops to these programs.

    Args:
        main_program: The program to which layers append.
        startup_program: The program that initializes parameters; default: the current one.

    Raises:
        InvalidArgumentError: One of them is not a Program.
    """
    for argument, program in (("main_program", main_program), ("startup_program", startup_program)):
        if not isinstance(program, Program) and not (program is None and argument == "startup_program"):
            raise InvalidArgumentError(
                f"program_guard: {argument} is {type(program).__name__}; expected an oprack.Program, for example "
                "oprack.Program()"
            )
    main = _main.set(main_program)
    startup = _startup.set(startup_program or _startup.get())
    try:
        yield
    finally:
        _startup.reset(startup)
        _main.reset(main)


@contextmanager
def name_scope(prefix: str) -> Iterator[None]:
    """Within a with block, appended ops have op_namescope "/prefix/" (nested: "/outer/inner/"), for people and tools.

    Args:
        prefix: Name of a part of the network.

    Raises:
        InvalidArgumentError: The prefix is empty or not a str.
    """
    if not isinstance(prefix, str) or not prefix.strip("/"):
        raise InvalidArgumentError(f"name_scope: prefix is {prefix!r}; expected a str that is not empty")
    # A scope whose name was used before gets a number, so that tools can tell them apart.
    number = unique_name.generate(f"{_scope.get()}{prefix}").rpartition("_")[2]
    token = _scope.set(f"{_scope.get()}{prefix}{'' if number == '0' else '_' + number}/")
    try:
        yield
    finally:
        _scope.reset(token)


@contextmanager
def op_role_guard(role: OpRole | int, variables: Sequence[Any] = ()) -> Iterator[None]:
    """Within a with block, appended ops have this op_role.

    Args:
        role: The role.
        variables: The variables, or their names, of op_role_var: [parameter, gradient, ...].
    """
    names = tuple(v if isinstance(v, str) else v.name for v in variables)
    token = _role.set((OpRole(role), names))
    try:
        yield
    finally:
        _role.reset(token)


def current_op_role() -> tuple[OpRole, tuple[str, ...]]:
    """op_role and op_role_var of newly appended ops.

    Returns:
        (role, names of variables).
    """
    return _role.get()


def current_name_scope() -> str:
    """op_namescope of newly appended ops; "/" outside of all scopes."""
    return _scope.get()
