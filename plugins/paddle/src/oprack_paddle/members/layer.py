"""Methods of layers that Paddle's have, beside those of oprack.nn.Module."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import oprack
from oprack import nn

from oprack_paddle.functions._tools import dtype_name

_Module = nn.Module
_STATISTICS = {"mean": "_mean", "variance": "_variance"}
"""Running statistics of batch_norm, which Paddle counts among the parameters, by its names."""


def _renamed(path: str) -> str:
    """The path of a running statistic as Paddle has it."""
    head, dot, name = path.rpartition(".")
    return f"{head}{dot}{_STATISTICS.get(name, name)}"


_own = {
    name: vars(_Module)[name]
    for name in ("named_parameters", "parameters", "set_state_dict", "create_parameter", "to", "__call__")
}


def add_parameter(self: Any, name: str, parameter: Any) -> Any:
    """Add a parameter by name; None makes an attribute that is None."""
    setattr(self, name, parameter)
    return parameter


def add_sublayer(self: Any, name: str, sublayer: Any) -> Any:
    """Add a part by name."""
    return self.add_module(str(name), sublayer)


def sublayers(self: Any, include_self: bool = False) -> list[Any]:
    """All parts, and their parts."""
    found = list(self.modules())
    return found if include_self else found[1:]


def named_sublayers(
    self: Any, prefix: str = "", include_self: bool = False, layers_set: Any = None
) -> Iterator[tuple[str, Any]]:
    """All parts by path."""
    for path, part in self.named_modules():
        if part is self and not include_self:
            continue
        yield ".".join(filter(None, (prefix, path))), part


def named_parameters(self: Any, prefix: str = "", include_sublayers: bool = True) -> Iterator[tuple[str, Any]]:
    """Parameters by path."""
    modules = self.named_modules() if include_sublayers else [("", self)]
    for path, part in modules:
        members = [
            *part._parameters.items(),
            *((_STATISTICS[n], b) for n, b in part._buffers.items() if n in _STATISTICS),
        ]
        for name, value in members:
            if value is not None:
                yield ".".join(filter(None, (prefix, path, name))), value


def parameters(self: Any, include_sublayers: bool = True) -> list[Any]:
    """All parameters."""
    found = list(_own["parameters"](self)) if include_sublayers else list(self._parameters.values())
    return [p for p in found if p is not None]


def set_state_dict(
    self: Any, state_dict: Mapping[str, Any], use_structured_name: bool = True, strict: bool = False
) -> Any:
    """Copy values by path, or by the names of parameters; the paths that are missing and those that nobody expects."""
    if not use_structured_name:
        by_name = {p.name: n for n, p in self.state_dict().items()}
        state_dict = {by_name.get(n, n): v for n, v in state_dict.items()}
    own = self.state_dict()
    plain = {n: v for n, v in state_dict.items() if not isinstance(v, str | dict)}
    values = {n: np.asarray(v) for n, v in plain.items() if n in own}
    for name, value in values.items():
        if tuple(value.shape) != tuple(own[name].shape):
            raise ValueError(
                f"set_state_dict: {name} has shape {list(own[name].shape)}, the state's {list(value.shape)}"
            )
    for name, value in values.items():
        own[name].set_value(value)
    return [n for n in own if n not in plain], [n for n in plain if n not in own]


def create_parameter(
    self: Any, shape: Any, attr: Any = None, dtype: Any = None, is_bias: bool = False, default_initializer: Any = None
) -> Any:
    """A parameter; its dtype is the default one unless it is given."""
    from oprack_paddle.state import get_default_dtype

    if attr is False:
        return None
    return _own["create_parameter"](
        self, list(shape), attr, dtype_name(dtype) or get_default_dtype(), is_bias, default_initializer
    )


class Handle:
    """What takes a hook away again."""

    def __init__(self, remove: Callable[[], None]) -> None:
        self.remove = remove


def register_forward_post_hook(self: Any, hook: Any) -> Handle:
    """Call `hook(layer, inputs, outputs)` after each call."""
    return Handle(nn.Module.register_forward_hook(self, hook))


def clear_gradients(self: Any) -> None:
    """The gradients of all parameters are gone."""
    self.clear_grad()


def to(self: Any, device: Any = None, dtype: Any = None, blocking: Any = None) -> Any:
    """To another place, or in another dtype."""
    if isinstance(device, str):
        device = device.replace("gpu", "cuda")
    return _own["to"](self, device, dtype_name(dtype))


def astype(self: Any, dtype: Any = None) -> Any:
    """In another dtype."""
    return to(self, dtype=dtype)


def float_(self: Any, excluded_layers: Any = None) -> Any:
    """In float32."""
    return to(self, dtype="float32")


def create_tensor(self: Any, name: Any = None, persistable: Any = None, dtype: Any = None) -> Any:
    """An empty tensor."""
    return oprack.zeros([], dtype=dtype_name(dtype) or "float32")


class FullName(str):
    """A name that can be called, as Paddle's full_name(), and is one, as oprack's."""

    def __call__(self) -> str:
        """The name."""
        return str(self)


def to_static_state_dict(self: Any, *args: Any, **kwargs: Any) -> Any:
    """Parameters and buffers by path."""
    return self.state_dict()


def state_dict(
    self: Any,
    destination: Any = None,
    include_sublayers: bool = True,
    structured_name_prefix: str = "",
    use_hook: bool = True,
) -> Any:
    """Parameters and buffers by path."""
    own = {_renamed(n): v for n, v in _state(self).items()}
    found = {structured_name_prefix + n: v for n, v in own.items() if include_sublayers or "." not in n}
    if destination is None:
        return found
    destination.update(found)
    return destination


_state = vars(_Module)["state_dict"]


def install() -> None:
    """Give oprack's Module these methods."""
    for function in (
        add_parameter, add_sublayer, sublayers, named_sublayers, named_parameters, parameters, set_state_dict,
        create_parameter,
        register_forward_post_hook, clear_gradients, to, astype, create_tensor, create_tensor, to_static_state_dict,
        state_dict,
    ):  # fmt: skip
        setattr(_Module, function.__name__, function)
    _Module.float = float_
    _Module.create_variable = create_tensor
    _Module.set_dict = _Module.load_dict = set_state_dict
    _Module.full_name = property(lambda self: FullName(self._name))
