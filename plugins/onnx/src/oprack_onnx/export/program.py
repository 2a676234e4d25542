"""A loaded model made ready for ONNX, and written."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnx
from onnx import ModelProto
from oprack import CPUPlace
from oprack.io.inference_model import InferenceModel
from oprack.ir import optimize, registered_passes
from oprack.program import Program
from oprack.tensor import LoDTensor, Scope

from oprack_onnx.export.model import export_model

_PASSES = ("remove_dead_code", "remove_identities", "fold_constants", "known_shape_to_attr", "known_size_to_fill")
"""What is known before a run is worked out, as ONNX's graphs want it; nothing is fused."""

MOST_INSIDE = 2**30
"""Bytes of parameters beyond which they go to a file beside the model: protobuf's messages end at 2 GiB."""


def export_loaded(model: InferenceModel, scope: Scope) -> tuple[ModelProto, list[str]]:
    """Write a model as one of ONNX.

    Args:
        model: As `load_inference_model` returned it; it stays as it is.
        scope: Where its parameters are.

    Returns:
        The model, and the ops that ONNX has no counterpart for, with why; they are nodes of the domain `oprack`.
    """
    known = {p.name: p for p in registered_passes()}
    passes = [known[name] for name in _PASSES if name in known]
    done = optimize(model.program.desc, scope, keep=model.fetch_names, passes=passes, place=CPUPlace())
    program = Program(done.program)
    held = {}
    for name, var in program.desc.blocks[0].vars.items():
        found = scope.find_var(name) if var.persistable else None
        if found is not None and isinstance(found.value, LoDTensor):
            held[name] = np.asarray(found.value.array)
    return export_model(program, model.feed_names, model.fetch_names, held)


def write(model: InferenceModel, scope: Scope, path: str | os.PathLike[str]) -> tuple[Sequence[Path], Sequence[str]]:
    """Write a model to `<path>`, and parameters beyond 1 GiB to `<path>.data`.

    Args:
        model: The model.
        scope: Where its parameters are.
        path: The `.onnx` file.

    Returns:
        The files, and a remark on each sort of op that only oprack-onnx reads again.
    """
    made, lacking = export_loaded(model, scope)
    remarks = [
        f"{op}; it is a node of the domain 'oprack', which oprack-onnx reads and other runtimes do not"
        for op in lacking
    ]
    file = Path(path)
    size = sum(len(t.raw_data) for t in made.graph.initializer)
    if size > MOST_INSIDE:
        onnx.save(made, file, save_as_external_data=True, location=f"{file.name}.data")
        return [file, file.with_name(f"{file.name}.data")], remarks
    onnx.save(made, file)
    return [file], remarks
