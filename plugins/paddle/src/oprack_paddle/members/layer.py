"""Methods of layers that Paddle's have, beside those of oprack.nn.Module."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import oprack
from oprack import layers, nn
from oprack.layers import unique_name

from oprack_paddle.functions._tools import dtype_name
from oprack_paddle.state import get_default_dtype, in_dynamic_mode

_Module = nn.Module
_NAMES: dict[type, dict[str, str]] = {
    nn.BatchNorm: {"mean": "_mean", "variance": "_variance"},
    nn.InstanceNorm: {"weight": "scale"},
    nn.PReLU: {"weight": "_weight"},
}
"""Members that Paddle calls otherwise."""

_RECURRENT = re.compile(r"(weight|bias)_(ih|hh)_l(\d+)(_reverse)?")


def _names(part: Any) -> Mapping[str, str]:
    """Paddle's names of the members of a layer that it calls otherwise."""
    return next((names for kind, names in _NAMES.items() if isinstance(part, kind)), {})


def _renamed(layer: Any) -> dict[str, str]:
    """oprack's path -> Paddle's path, of the members that it calls otherwise."""
    found = {}
    for path, part in layer.named_modules():
        for own, name in _names(part).items():
            found[".".join(filter(None, (path, own)))] = ".".join(filter(None, (path, name)))
    return found


def _in_order(name: str) -> tuple[Any, ...]:
    """Where a parameter of a recurrent layer stands: by layer, direction, weights before biases."""
    found = _RECURRENT.fullmatch(name)
    assert found is not None
    kind, gate, layer, reverse = found.groups()
    return int(layer), bool(reverse), kind == "bias", gate == "hh"


def _parameters(part: Any) -> list[tuple[str, Any]]:
    """The parameters of a layer itself by Paddle's names and in its order, and statistics that it counts among them."""
    names = _names(part)
    found = [(names.get(n, n), p) for n, p in part._parameters.items()]
    if found and all(map(_RECURRENT.fullmatch, part._parameters)):
        found.sort(key=lambda item: _in_order(item[0]))
    return found + [(names[n], b) for n, b in part._buffers.items() if n in names]


_own = {name: vars(_Module)[name] for name in ("__init__", "create_parameter", "register_buffer", "to")}


def _start(self: Any, name_scope: Any = None, dtype: Any = "float32", name: Any = None) -> None:
    """A layer is named after its class, in Paddle's form, which files of states have: batch_norm1d_0."""
    words = re.sub(r"([a-z])([A-Z])", r"\1_\2", re.sub(r"(.)([A-Z][a-z]+)", r"\1_\2", type(self).__name__))
    _own["__init__"](self, name or unique_name.generate(name_scope or words.lower()))


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
    seen = set()
    for path, part in self.named_modules() if include_sublayers else [("", self)]:
        for name, value in _parameters(part):
            if value is not None and id(value) not in seen:
                seen.add(id(value))
                yield ".".join(filter(None, (prefix, path, name))), value


def named_buffers(self: Any, prefix: str = "", include_sublayers: bool = True) -> Iterator[tuple[str, Any]]:
    """Buffers by path, but for statistics, which are among the parameters."""
    for path, part in self.named_modules() if include_sublayers else [("", self)]:
        names = _names(part)
        for name, value in part._buffers.items():
            if name not in names and value is not None:
                yield ".".join(filter(None, (prefix, path, name))), value


def buffers(self: Any, include_sublayers: bool = True) -> list[Any]:
    """All buffers, but for statistics."""
    return [value for _, value in named_buffers(self, "", include_sublayers)]


def parameters(self: Any, include_sublayers: bool = True) -> list[Any]:
    """All parameters that are trained, in Paddle's order."""
    found = named_parameters(self, "", include_sublayers)
    return [p for _, p in found if isinstance(p, oprack.Parameter)]


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
    """A parameter, of the program if one is built; its dtype is the default one unless it is given."""
    if attr is False:
        return None
    if not in_dynamic_mode():
        settings = {"attr": attr, "is_bias": is_bias, "default_initializer": default_initializer}
        name = getattr(attr, "name", None) or unique_name.generate(f"{self._name}.{'b' if is_bias else 'w'}")
        return layers.create_parameter(list(shape), dtype_name(dtype) or get_default_dtype(), name, **settings)
    return _own["create_parameter"](
        self, list(shape), attr, dtype_name(dtype) or get_default_dtype(), is_bias, default_initializer
    )


def register_buffer(self: Any, name: str, tensor: Any, persistable: bool = True) -> None:
    """Add a tensor that is not trained; while a program is built, a variable of it that starts from these numbers."""
    if in_dynamic_mode():
        _own["register_buffer"](self, name, tensor, persistable)
        return
    from oprack_paddle.layers.initializers import Assign

    array = np.asarray(tensor)
    attr = oprack.ParamAttr(initializer=Assign(array), trainable=False)
    variable = layers.create_parameter(list(array.shape), str(array.dtype), f"{self._name}.{name}", attr=attr)
    self.__dict__[name] = variable


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
    names = _renamed(self)
    own = {names.get(n, n): v for n, v in _state(self).items()}
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
        state_dict, named_buffers, buffers, register_buffer,
    ):  # fmt: skip
        setattr(_Module, function.__name__, function)
    _Module.float = float_
    _Module.create_variable = create_tensor
    _Module.set_dict = _Module.load_dict = set_state_dict
    _Module.__init__ = _start
    for cell in (nn.SimpleRNNCell, nn.GRUCell):
        cell.state_shape = property(lambda self: (self.hidden_size,))
    nn.LSTMCell.state_shape = property(lambda self: ((self.hidden_size,), (self.hidden_size,)))
    for kind, names in _NAMES.items():
        for own, name in names.items():
            setattr(kind, name, property(operator.attrgetter(own)))
    _Module.full_name = property(lambda self: FullName(self._name))
