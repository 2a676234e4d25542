"""ParamAttr: how a layer's parameter is named, filled and trained; Initializer, which fills it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from oprack.errors import InvalidArgumentError
from oprack.layers.append import append_op
from oprack.layers.variable import Variable
from oprack.packs.manager import default_manager
from oprack.records import dataclass
from oprack.types import dtype_enum


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
    found: Initializer = constant(0.0) if is_bias else default_manager().layer("initializer", "Xavier")()
    return found


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
        """What a layer's argument stands for.

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
