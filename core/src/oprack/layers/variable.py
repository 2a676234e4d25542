"""Variable, a handle with operators that append ops; ParamAttr, which says how one is made; checks of arguments."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias

from oprack.desc import BlockDesc
from oprack.errors import InvalidArgumentError
from oprack.layers import unique_name
from oprack.layers.append import append_op
from oprack.layers.framework import VariableHandle
from oprack.layers.operators import SIGNS, offer_operators
from oprack.layers.user_line import errors_at_user_line
from oprack.packs import op_for
from oprack.packs.manager import default_manager
from oprack.program import ParameterInfo, Program
from oprack.python.records import dataclass
from oprack.types import dtype_enum, dtype_name

if TYPE_CHECKING:
    from oprack.layers.operators import Operators

    class _WithOperators(Operators["Variable"], VariableHandle): ...
else:
    _WithOperators = VariableHandle


class Variable(_WithOperators):
    """A variable of a block. Python's operators append ops: `x * 2 + y`, `x[0]`, `x < y`, `x @ w`.

    A Variable has no value while the program is built; run the program and fetch it. Equality is an op as well, so
    compare handles with `is`, or by name.

    Args:
        program: The program.
        block: The block that has the variable.
        desc: The variable's description.
    """

    __slots__ = ()

    def _apply(
        self, op_type: str, inputs: dict[str, Any], attrs: dict[str, Any], slots: tuple[str, ...] = ("Out",)
    ) -> Variable:
        block = self.program.current_block()
        name = unique_name.generate(op_type)
        outs = {
            slot: Variable(self.program, block, block.create_var(unique_name.generate(f"{name}.tmp"))) for slot in slots
        }
        append_op(op_type, inputs, outs, attrs, program=self.program)
        return outs[slots[0]]

    def _operand(self, other: Any) -> Any:
        """Convert the other operand of an operator, which is neither a Variable nor a number, to a Variable.

        Returns:
            None, since nothing else can be an operand in a program; eager tensors, which have the same method, take
            arrays.
        """
        return None

    def astype(self, dtype: object) -> Variable:
        """The values as another dtype.

        Args:
            dtype: Its name, a VarType or a NumPy dtype.

        Returns:
            A Variable of the same shape.
        """
        attrs = {"in_dtype": int(dtype_enum(self.dtype)), "out_dtype": int(dtype_enum(dtype_name(dtype)))}
        return self._apply(op_for("convert"), {"X": self}, attrs)

    def detach(self) -> Variable:
        """The same values, through which no gradient flows."""
        copy = self._apply(op_for("copy"), {"X": self}, {})
        copy.stop_gradient = True
        return copy

    def __len__(self) -> int:
        if not self.shape or self.shape[0] < 0:
            raise InvalidArgumentError(f"len({self.name}): dim 0 of shape {list(self.shape)} is not known before a run")
        return self.shape[0]

    def __iter__(self) -> Iterator[Variable]:
        return (self[i] for i in range(len(self)))

    def __bool__(self) -> NoReturn:
        raise InvalidArgumentError(
            f"variable {self.name!r} has no value while the program is built, so `if`, `and`, `not` and "
            "`in` can't use it; use layers.cond or layers.while_loop, layers.logical_and, `is None`, or compare names"
        )


offer_operators(Variable, SIGNS, "operators")


class Parameter(Variable):
    """A variable that the startup program fills and training changes.

    Args:
        program: The program.
        block: The block that has the variable.
        desc: The variable's description.
    """

    __slots__ = ()

    @property
    def info(self) -> ParameterInfo:
        """What the program notes about it beside the VarDesc; changing it changes the program."""
        return self.program.parameters.setdefault(self.name, ParameterInfo())

    @property
    def trainable(self) -> bool:
        """Whether optimizers change it."""
        return not self.desc.stop_gradient

    @trainable.setter
    def trainable(self, value: bool) -> None:
        self.desc.stop_gradient = not value

    @property
    def optimize_attr(self) -> dict[str, float]:
        """A factor for the optimizer's learning rate, as {"learning_rate": factor}."""
        return {"learning_rate": self.info.learning_rate}

    @property
    def regularizer(self) -> Any:
        """Its weight decay, in place of the optimizer's; None: the optimizer's."""
        return self.info.regularizer

    @property
    def need_clip(self) -> bool:
        """Whether its gradient is clipped."""
        return self.info.need_clip

    @property
    def initializer(self) -> Any:
        """The initializer that fills it in the startup program."""
        return self.info.initializer


def variable_of(program: Program, name: str, block: BlockDesc | None = None) -> Variable:
    """Look up a variable in a block and its parents.

    Args:
        program: The program.
        name: The variable's name.
        block: Where to begin; default: the program's current block.

    Returns:
        A Variable, or a Parameter where it is one.

    Raises:
        NotFoundError: There is none; the message lists names alike.
    """
    start = block or program.current_block()
    desc = start.var(name)
    owner = next(b for b in start.ancestors() if b.find_var(name) is desc)
    return (Parameter if desc.is_parameter else Variable)(program, owner, desc)


# How parameters are made ---------------------------------------------------------------------------------------------
class Initializer(ABC):
    """Called with a variable of a startup program; appends the op that fills it."""

    @abstractmethod
    def __call__(self, var: Variable) -> None:
        """Append the op to block 0 of the variable's program."""

    def append(self, op_type: str, var: Variable, attrs: Mapping[str, Any]) -> None:
        """Append an op without inputs whose output Out is the variable, which also says its `shape` and `dtype`."""
        common = {"shape": list(var.shape), "dtype": int(dtype_enum(var.dtype))}
        program = var.program
        append_op(op_type, {}, {"Out": var}, {**common, **attrs}, program=program, block=program.global_block())

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{k}={v!r}' for k, v in vars(self).items())})"


def constant(value: float) -> Initializer:
    """`oprack.initializer.Constant(value)` of the pack that brings it. Raises UnknownLayerError."""
    return default_manager().layer("initializer", "Constant")(value)  # type: ignore[no-any-return]


def default_initializer(is_bias: bool) -> Initializer:
    """0 for biases, `oprack.initializer.Xavier()` for all else. Raises UnknownLayerError when no pack brings it."""
    initializer: Initializer = constant(0.0) if is_bias else default_manager().layer("initializer", "Xavier")()
    return initializer


@dataclass
class ParamAttr:
    """Attributes of a parameter, for `param_attr` and `bias_attr` of layers.

    Attributes:
        name: Its name; None: made by the layer, as `fc_0.w_0`. Two layers that give one name share the parameter.
        initializer: What it starts from; None: chosen by the layer.
        learning_rate: A factor of the optimizer's.
        regularizer: Its weight decay, in place of the optimizer's; None: the optimizer's.
        trainable: Whether it is trained; False: it stays as it was filled.
        need_clip: Whether gradient clipping takes it in.
    """

    name: str | None = None
    initializer: Any = None
    learning_rate: float = 1.0
    regularizer: Any = None
    trainable: bool = True
    need_clip: bool = True

    @staticmethod
    def of(value: Any) -> ParamAttr | None:
        """Convert what a user passes as `param_attr` or `bias_attr`.

        Args:
            value: None or True for the defaults, False for no parameter, a str for its name, an initializer or a
                regularizer alone, or a ParamAttr.

        Returns:
            The ParamAttr; None for False.

        Raises:
            InvalidArgumentError: It is something else.
        """

        if value is None or value is True:
            return ParamAttr()
        if value is False:
            return None
        if isinstance(value, ParamAttr):
            return value
        if isinstance(value, str):
            return ParamAttr(name=value)
        if isinstance(value, Initializer):
            return ParamAttr(initializer=value)
        if callable(value):
            return ParamAttr(regularizer=value)
        raise InvalidArgumentError(
            f"param_attr: got {value!r} ({type(value).__name__}); expected ParamAttr, a name, an initializer, a "
            "regularizer, None for the defaults, or False for no parameter"
        )


ParamAttrLike: TypeAlias = "ParamAttr | Initializer | Callable[..., Any] | str | bool | None"
"""What `param_attr` and `bias_attr` of layers may be, as ParamAttr.of takes it; a Callable is a regularizer."""


# Checks of arguments: errors name layer, argument, what was passed and what is expected -------------------------------
def check_type(value: Any, argument: str, layer: str, expected: type | tuple[type, ...]) -> None:
    """Refuse an argument of another type.

    Args:
        value: The argument.
        argument: What the layer calls it.
        layer: The layer, for the error.
        expected: A type or several.

    Raises:
        InvalidArgumentError: The value is no instance of them.
    """
    if not isinstance(value, expected):
        kinds = expected if isinstance(expected, tuple) else (expected,)
        names = " or ".join("None" if k is type(None) else k.__name__ for k in kinds)
        with errors_at_user_line():
            raise InvalidArgumentError(
                f"{layer}: {argument} is {_described(value)} ({type(value).__name__}); expected {names}"
                + (_advice(value) if Variable in kinds else "")
            )


def _advice(value: Any) -> str:
    if hasattr(value, "__oprack_value__"):
        return (
            " of a program; layers write programs, and this is an eager tensor: call the op itself with it, "
            "oprack.functional.<op>(x), or a module of oprack.nn"
        )
    return "; make a Variable of an array with oprack.layers.assign(array)"


def check_dtype(dtype: object, argument: str, layer: str, expected: Collection[str]) -> str:
    """The name of a dtype, checked.

    Args:
        dtype: The dtype, in any way that `oprack.types.dtype_name` takes.
        argument: What the layer calls it.
        layer: The layer, for the error.
        expected: Names of dtypes.

    Returns:
        The name.

    Raises:
        InvalidArgumentError: It is none of them.
    """
    name = "of no dtype" if dtype is None else dtype_name(dtype)
    if name not in expected:
        with errors_at_user_line():
            raise InvalidArgumentError(
                f"{layer}: {argument} is {name}; expected {' or '.join(sorted(expected))}; convert it with "
                f"layers.cast({argument}, dtype)"
            )
    return name


def check_variable(value: Any, argument: str, layer: str, dtypes: Collection[str] = ()) -> Variable:
    """The Variable that an argument is, checked.

    Args:
        value: The argument.
        argument: What the layer calls it.
        layer: The layer, for the error.
        dtypes: Names of dtypes; () for any.

    Returns:
        The Variable.

    Raises:
        InvalidArgumentError: It is no Variable, or of another dtype.
    """
    check_type(value, argument, layer, Variable)
    if dtypes and value.dtype not in dtypes:
        with errors_at_user_line():
            raise InvalidArgumentError(
                f"{layer}: {argument} (variable {value.name!r}) is {value.dtype}; expected "
                f"{' or '.join(sorted(dtypes))}; convert it with layers.cast({argument}, dtype)"
            )
    return value  # type: ignore[no-any-return]


def _described(value: Any) -> str:
    return str(value.describe()) if hasattr(value, "__oprack_value__") else repr(value)
