"""Module: a tree of parameters, buffers and modules, and a forward function."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Self

import numpy as np
from oprack.eager_tensor.devices import context, place_and_dtype
from oprack.eager_tensor.meta import tensor_meta
from oprack.errors import AlreadyExistsError, InvalidArgumentError, NotFoundError
from oprack.functional.advice import shown
from oprack.functional.tensor import Tensor, to_tensor
from oprack.layers import unique_name
from oprack.layers.variable import Initializer
from oprack.names.spellings import ABSENT, InitSignature, accept_other_names, instead, require_keywords, same
from oprack.nn.parameter import DeferredParameter, Parameter, create_parameter
from oprack.tensor import LoDTensor, numpy_dtype


class Changes:
    """What captured programs compare first. epoch: another object after every change of any Module's members."""

    __slots__ = ("epoch",)

    def __init__(self) -> None:
        self.note()

    def note(self) -> None:
        """Note that a Module has changed."""
        # Not a counter: of two threads that count at once one would be lost.
        self.epoch = object()


CHANGES = Changes()


class Module:
    """Base of the parts of a network: derive from it, create parameters and parts in __init__, compute in forward.

    Parameters, buffers and modules that are assigned as attributes belong to it; their names in `state_dict` are paths
    of attributes.

    Args:
        name: Prefix of the names of its parameters; default: derived from the class.
    """

    __signature__ = InitSignature()
    training: bool
    _modules: dict[str, Module]

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        if kwargs:
            require_keywords(cls, kwargs)
        return super().__new__(cls)

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        accept_other_names(cls)

    def __init__(self, name: str | None = None) -> None:
        self.__dict__.update(_parameters={}, _buffers={}, _modules={}, _kept={}, training=True)
        self.__dict__["_name"] = name or unique_name.generate(type(self).__name__.lower())

    @property
    def full_name(self) -> str:
        """The prefix of the names of its parameters, such as "linear_0"."""
        return str(self._name)

    def rename(self) -> None:
        """Generate new names for it and for its own parameters, as a copy needs that is trained beside the original."""
        self.__dict__["_name"] = unique_name.generate(type(self).__name__.lower())
        for p in self._parameters.values():
            p.name = unique_name.generate(f"{self.full_name}.{str(p.name).rpartition('.')[2][:1]}")

    # Making -----------------------------------------------------------------------------------------------------------
    def create_parameter(
        self,
        shape: Sequence[int],
        attr: Any = None,
        dtype: object = "float32",
        is_bias: bool = False,
        default_initializer: Initializer | None = None,
    ) -> Parameter:
        """A parameter named after the module; assign it to an attribute. See `oprack.interpreter.create_parameter`."""
        return create_parameter(shape, dtype, attr, is_bias, default_initializer, self.full_name)

    def register_buffer(self, name: str, value: Any, persistable: bool = True) -> None:
        """Add a tensor that is not a parameter, such as a running mean, as attribute `name`.

        If it is persistable, state_dict includes it. Raises AlreadyExistsError when `name` is a parameter or a part.
        """
        self._require_free(name, self._buffers)
        tensor = value if isinstance(value, Tensor) else to_tensor(value)
        tensor.name = tensor.name or f"{self.full_name}.{name}"
        self.__dict__.pop(name, None)
        self._buffers[name] = tensor
        self._kept[name] = persistable
        CHANGES.note()

    def add_module(self, name: str, module: Module) -> Module:
        """Add a part by name, for names that are computed.

        Args:
            name: The name.
            module: The part.

        Returns:
            The part.

        Raises:
            InvalidArgumentError: `module` is not a Module.
            AlreadyExistsError: The name is that of a parameter or a buffer.
        """
        if not isinstance(module, Module):
            raise InvalidArgumentError(f"{self.full_name}: part {name!r} is {module!r}; expected a Module")
        self._require_free(name, self._modules)
        self.__dict__.pop(name, None)
        self._modules[name] = module
        CHANGES.note()
        return module

    def _require_free(self, name: str, target: Any) -> None:
        """Raise AlreadyExistsError if `name` is a member of another kind than those in the dict `target`."""
        for members, kind in ((self._parameters, "parameter"), (self._buffers, "buffer"), (self._modules, "part")):
            if name in members and members is not target:
                raise AlreadyExistsError(
                    f"{self.full_name}.{name} is a {kind} already; choose another name, or delete it first: "
                    f"del net.{name}"
                )

    def __setattr__(self, name: str, value: Any) -> None:
        if "_modules" not in self.__dict__:
            raise InvalidArgumentError(f"{type(self).__name__}: call super().__init__() before setting {name}")
        member = isinstance(value, Parameter | Module)
        if not member and value is not None:
            self._require_no_member(name, value)
        if name in self._buffers and isinstance(value, Tensor) and not member:
            value.name = value.name or f"{self.full_name}.{name}"
            self._buffers[name] = value
            CHANGES.note()
            return
        self._forget(name)
        if member:
            self.__dict__.pop(name, None)
            (self._parameters if isinstance(value, Parameter) else self._modules)[name] = value
        else:
            self.__dict__[name] = value
        CHANGES.note()

    def _forget(self, name: str) -> bool:
        """Remove the member of that name; returns whether there was one."""
        tables = (self._parameters, self._buffers, self._modules)
        existed = any(name in table for table in tables)
        for table in (*tables, self._kept):
            table.pop(name, None)
        return existed

    def _require_no_member(self, name: str, value: Any) -> None:
        """Raise InvalidArgumentError if a value that is no Parameter or Module would replace a member."""
        got = value.describe() if isinstance(value, Tensor) else f"{shown(value)} ({type(value).__name__})"
        path = f"{self.full_name}.{name}"
        if name in self._parameters:
            raise InvalidArgumentError(
                f"{path} is a Parameter, {self._parameters[name].describe()}; got {got}. Write new values into it: "
                f"net.{name}.set_value(array); or replace it: net.{name} = oprack.Parameter(array), or None"
            )
        if name in self._modules:
            raise InvalidArgumentError(
                f"{path} is a part, {type(self._modules[name]).__name__}; got {got}. Expected a Module, or None for "
                "no part any more"
            )
        if name in self._buffers and not isinstance(value, Tensor):
            raise InvalidArgumentError(
                f"{path} is a buffer, {self._buffers[name].describe()}; got {got}. Write new values into it: "
                f"net.{name}.set_value(array); or replace it: net.{name} = oprack.to_tensor(array), or None"
            )

    def __getattr__(self, name: str) -> Any:
        for table in ("_parameters", "_modules", "_buffers"):
            members = self.__dict__.get(table, {})
            if name in members:
                return members[name]
        if not name.startswith("_") and (other := same("module", name, self)) is not ABSENT:
            return other
        advice = "" if name.startswith("_") else instead("module", name)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}{advice}")

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *self._parameters, *self._buffers, *self._modules})

    def __delattr__(self, name: str) -> None:
        if not self._forget(name):
            super().__delattr__(name)
        CHANGES.note()

    # Calling ----------------------------------------------------------------------------------------------------------
    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Compute the result of a call; every module class defines it.

        Raises:
            NotImplementedError: The class does not define it.
        """
        raise NotImplementedError(f"{type(self).__name__} must define forward")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        for hook in self.__dict__.get("_pre_hooks", ()):
            changed = hook(self, args)
            args = args if changed is None else changed if isinstance(changed, tuple) else (changed,)
        result = self.forward(*args, **kwargs)
        for hook in self.__dict__.get("_hooks", ()):
            changed = hook(self, args, result)
            result = result if changed is None else changed
        return result

    def register_forward_hook(self, hook: Callable[..., Any]) -> Callable[[], None]:
        """Call `hook(module, args, result)` after each call; unless it returns None, its result replaces the result.

        Returns a function that removes the hook.
        """
        hooks = self.__dict__.setdefault("_hooks", [])
        hooks.append(hook)
        CHANGES.note()
        return lambda: hooks.remove(hook)

    def register_forward_pre_hook(self, hook: Callable[..., Any]) -> Callable[[], None]:
        """Call `hook(module, args)` before each call; unless it returns None, its result replaces the arguments.

        Returns a function that removes the hook.
        """
        hooks = self.__dict__.setdefault("_pre_hooks", [])
        hooks.append(hook)
        CHANGES.note()
        return lambda: hooks.remove(hook)

    def train(self, mode: bool = True) -> Self:
        """Set training mode, in which dropout and batch statistics are active, here and in all parts."""
        for module in self.modules():
            if module.__dict__["training"] is not mode:
                module.__dict__["training"] = mode
                CHANGES.note()
        return self

    def eval(self) -> Self:
        """The opposite of train()."""
        return self.train(False)

    # State ------------------------------------------------------------------------------------------------------------
    def state_dict(self) -> dict[str, Tensor]:
        """Parameters and buffers by path; the tensors themselves, not copies."""
        persistent = {
            f"{path}.{name}" if path else name
            for path, module in self.named_modules()
            for name, persistable in module._kept.items()
            if persistable
        }
        return dict(self.named_parameters()) | {n: b for n, b in self.named_buffers() if n in persistent}

    def set_state_dict(self, state: Mapping[str, Any], strict: bool = True) -> None:
        """Copy values, tensors or arrays by path, into parameters and buffers.

        Args:
            state: Values by path.
            strict: Whether the paths of module and state must be the same.

        Raises:
            NotFoundError: Paths differ; the message lists all of them, and nothing is changed.
            InvalidArgumentError: Shapes differ; nothing is changed.
        """
        own = self.state_dict()
        if strict:
            self._require_same_paths(own, state)
        pairs = [(n, own[n], v) for n, v in state.items() if n in own]
        # Check all shapes before copying any value, so that an error changes nothing.
        for name, tensor, value in pairs:
            shape = tuple(value.shape) if hasattr(value, "shape") else np.shape(value)
            if shape != tensor.shape:
                raise InvalidArgumentError(
                    f"{self.full_name}: {name} has shape {list(tensor.shape)}, the state's {list(shape)}"
                )
        for _, tensor, value in pairs:
            tensor.set_value(value)

    def _require_same_paths(self, own: Mapping[str, Any], state: Mapping[str, Any]) -> None:
        missing, unknown = [n for n in own if n not in state], [n for n in state if n not in own]
        if missing or unknown:
            raise NotFoundError(
                f"{self.full_name}: the state has no {', '.join(missing) or 'path missing'}; not expected: "
                f"{', '.join(unknown) or 'none'}; pass strict=False to take what fits"
            )

    load_state_dict = set_state_dict

    def to(self, place: Any = None, dtype: object = None) -> Self:
        """Move parameters and buffers to a place, or make the floating ones another dtype.

        Parameters that were made inside `oprack.nn.deferred()` are drawn now.

        place: a Place or its name ("cpu", "cuda", "cuda:1"), or a dtype. Raises InvalidArgumentError, and NotFoundError
        when no plugin serves the place.
        """
        place, dtype = place_and_dtype(place, dtype, f"{type(self).__name__}.to")
        for tensor in (*self.parameters(), *(b for _, b in self.named_buffers())):
            if isinstance(tensor, DeferredParameter):
                tensor.make(place=place)
            array = tensor._value
            if place is not None and place != tensor.place:
                array = context(place).from_host(context(tensor.place).to_host(array))
            if dtype is not None and tensor._meta.differentiable:
                array = array.astype(numpy_dtype(dtype))
            if array is not tensor._value:
                tensor._replace(array, tensor_meta(LoDTensor, array.dtype, place or tensor.place), "Module.to")
                tensor._grad = None
        return self

    def __repr__(self) -> str:
        lines = [f"  ({name}): " + repr(m).replace("\n", "\n  ") for name, m in self._modules.items()]
        shown = self.extra_repr()
        return f"{type(self).__name__}({shown}" + (("\n" + "\n".join(lines) + "\n") if lines else "") + ")"

    def extra_repr(self) -> str:
        """The settings of this module that repr shows."""
        return ", ".join(f"{n}: {list(p.shape)}" for n, p in self._parameters.items())

    # Its parts --------------------------------------------------------------------------------------------------------
    def named_modules(self, prefix: str = "") -> Iterator[tuple[str, Module]]:
        """This module and all parts, with their paths."""
        yield prefix, self
        for name, module in self._modules.items():
            yield from module.named_modules(f"{prefix}.{name}" if prefix else name)

    def modules(self) -> Iterator[Module]:
        """This module and all parts."""
        return (module for _, module in self.named_modules())

    def children(self) -> Iterator[Module]:
        """The direct parts of this module."""
        return iter(self._modules.values())

    def named_children(self) -> Iterator[tuple[str, Module]]:
        """The direct parts of this module, with their names."""
        return iter(self._modules.items())

    def named_parameters(self) -> Iterator[tuple[str, Parameter]]:
        """Parameters with their paths; a shared parameter is listed once, under its first path."""
        return self._named("_parameters")

    def named_buffers(self) -> Iterator[tuple[str, Tensor]]:
        """Buffers with their paths."""
        return self._named("_buffers")

    def _named(self, table: str) -> Iterator[tuple[str, Any]]:
        seen: set[int] = set()
        for path, module in self.named_modules():
            for name, value in getattr(module, table).items():
                if id(value) not in seen:
                    seen.add(id(value))
                    yield f"{path}.{name}" if path else name, value

    def parameters(self) -> list[Parameter]:
        """All parameters, those of parts included."""
        return [p for _, p in self.named_parameters()]

    def buffers(self) -> list[Tensor]:
        """All buffers, those of parts included."""
        return [b for _, b in self.named_buffers()]

    def apply(self, function: Callable[[Module], Any]) -> Self:
        """Call a function with every part and then with this module, for example to fill parameters.

        Args:
            function: A function of a module; what it returns is not used.

        Returns:
            This module.
        """
        for module in self.children():
            module.apply(function)
        function(self)
        return self

    def clear_grad(self) -> None:
        """Clear the gradients of all parameters."""
        for p in self.parameters():
            p.clear_grad()


Layer = Module  # Paddle's name
