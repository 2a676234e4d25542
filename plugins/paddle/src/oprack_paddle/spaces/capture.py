"""paddle.jit: functions and layers written down as programs, and read again."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import oprack
from oprack import nn

_enabled = [True]


def to_static(
    function: Any = None, input_spec: Any = None, build_strategy: Any = None, backend: Any = None, **kwargs: Any
) -> Any:
    """A function or a layer that runs as a program from its second call on."""
    if function is None:
        return functools.partial(
            to_static, input_spec=input_spec, build_strategy=build_strategy, backend=backend, **kwargs
        )
    if isinstance(function, nn.Module):
        function.__dict__["_input_spec"] = input_spec
        return function
    return (
        oprack.jit.to_static(function, input_spec)
        if input_spec is not None
        else _switched(oprack.jit(function), function)
    )


def _switched(captured: Any, function: Any) -> Any:
    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        return (captured if _enabled[0] else function)(*args, **kwargs)

    return call


def not_to_static(func: Any = None) -> Any:
    """A function that is called as it is."""
    return not_to_static if func is None else func


def ignore_module(modules: Any) -> None:
    """Modules whose functions are not written down: calls of tensors alone are, so there is nothing to leave out."""


def enable_to_static(enable_to_static_bool: bool) -> None:
    """Whether functions run as programs."""
    _enabled[0] = bool(enable_to_static_bool)


def set_code_level(level: int = 100, also_to_stdout: bool = False) -> None:
    """How much transformed code is logged: functions are traced here, and no code is transformed."""


def set_verbosity(level: int = 0, also_to_stdout: bool = False) -> None:
    """How much is logged of the transformation of code, of which there is none."""


def save(layer: Any, path: str, input_spec: Any = None, **configs: Any) -> None:
    """Write a model for inference: a program and its parameters."""
    spec = input_spec if input_spec is not None else vars(layer).get("_input_spec")
    given = None if spec is None else [_spec(s) for s in spec]
    oprack.jit.save(layer, str(path), input_spec=given)


def _spec(value: Any) -> Any:
    if isinstance(value, oprack.Tensor):
        return oprack.InputSpec(list(value.shape), str(value.dtype), value.name)
    return value


class TranslatedLayer(nn.Module):
    """A model for inference, which load has read, as a layer."""

    def __init__(self, programs: Any, persistable_vars: Any) -> None:
        super().__init__()
        self.__dict__["_model"], self.__dict__["_scope"] = programs, persistable_vars
        self.__dict__["_executor"] = oprack.Executor(oprack.CPUPlace())

    def forward(self, *inputs: Any) -> Any:
        """What the model makes of its inputs."""
        feed = {n: np.asarray(v) for n, v in zip(self._model.feed_names, inputs, strict=True)}
        found = self._executor.run(
            self._model.program, feed=feed, fetch_list=list(self._model.fetch_names), scope=self._scope
        )
        tensors = [oprack.to_tensor(f) for f in found]
        return tensors[0] if len(tensors) == 1 else tensors

    def program(self, method_name: str = "forward") -> Any:
        """The program."""
        return self._model.program


def load(path: str, **configs: Any) -> TranslatedLayer:
    """Read a model for inference, as a layer in evaluation mode."""
    scope = oprack.Scope()
    found = TranslatedLayer(oprack.io.load_inference_model(str(path), scope), scope)
    found.eval()
    return found
