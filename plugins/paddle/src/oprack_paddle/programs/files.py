"""paddle.static: models for inference, and states of programs, as files."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np
import oprack
from oprack import io

from oprack_paddle.programs.programs import global_scope
from oprack_paddle.trainer import training as paddle_files


def _named(values: Any) -> list[str]:
    return [v.name for v in (values if isinstance(values, Sequence) else [values])]


def save_inference_model(
    path_prefix: str, feed_vars: Any, fetch_vars: Any, executor: Any = None, **kwargs: Any
) -> None:
    """Write the part of a program that computes some variables, and its parameters."""
    program = kwargs.get("program") or oprack.default_main_program()
    program = getattr(program, "_program", program).clone(for_test=True)
    names, targets = _named(feed_vars), _named(fetch_vars)
    inference = io.inference_program(program, names, targets)
    os.makedirs(os.path.dirname(str(path_prefix)) or ".", exist_ok=True)
    io.save_inference_model(path_prefix, inference, names, targets, global_scope())


def load_inference_model(path_prefix: str, executor: Any = None, **kwargs: Any) -> list[Any]:
    """Read a model: the program, the names that are fed, and what is fetched."""
    found = io.load_inference_model(
        path_prefix,
        global_scope(),
        model_filename=kwargs.get("model_filename"),
        params_filename=kwargs.get("params_filename"),
    )
    return [found.program, list(found.feed_names), list(found.fetch_names)]


def _parameters(program: Any) -> dict[str, Any]:
    """What a program keeps, by name."""
    found = {}
    for variable in getattr(program, "_program", program).list_vars():
        held = global_scope().find_var(variable.name) if variable.persistable else None
        if held is not None and hasattr(held.get(), "array"):
            found[variable.name] = held.get()
    return found


def save(program: Any, model_path: str, protocol: int = 4, **configs: Any) -> None:
    """Write a program and what it keeps."""
    os.makedirs(os.path.dirname(model_path) or ".", exist_ok=True)
    state = {n: np.asarray(v.array) for n, v in _parameters(program).items()}
    paddle_files.save(state, model_path + ".pdparams")
    with open(model_path + ".pdmodel", "wb") as file:
        file.write(getattr(program, "_program", program).serialize())


def load(program: Any, model_path: str, executor: Any = None, var_list: Any = None) -> None:
    """Read what a program keeps."""
    state = paddle_files.load(model_path + ".pdparams", return_numpy=True)
    wanted = None if var_list is None else set(_named(var_list))
    for name, held in _parameters(program).items():
        if name in state and (wanted is None or name in wanted):
            held.set(np.asarray(state[name]))
