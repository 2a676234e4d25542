"""ParamAttr: how a layer's parameter is named, filled and trained."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

from oprack.errors import InvalidArgumentError
from oprack.records import dataclass

if TYPE_CHECKING:
    from oprack.layers.initializer import Initializer


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
        from oprack.layers.initializer import Initializer

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
