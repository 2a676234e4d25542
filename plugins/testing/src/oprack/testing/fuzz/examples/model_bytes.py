"""An example as the bytes of an inference model, which predictors load."""

from __future__ import annotations

import io

from oprack.io.parameters import persistable_vars
from oprack.io.streams import write_variable
from oprack.program import Program
from oprack.tensor import LoDTensor, LoDTensorArray, SparseTensor
from oprack.testing.fuzz.examples.example import Example
from oprack.types import VarType


def model_bytes(example: Example) -> tuple[bytes, bytes] | None:
    """The example as the bytes of an inference model; None when it can't be one, or changes its own parameters."""
    program = Program(example.program.desc.clone())
    block = program.global_block()
    feeds = list(example.runs[0])
    if not all(isinstance(v, LoDTensor) for v in example.runs[0].values()):
        return None
    if any(isinstance(v, LoDTensorArray | SparseTensor) for v in example.params.values()) or not example.settled:
        return None
    if any(block.var(n).type is not VarType.LOD_TENSOR for n in example.fetch):
        return None
    block.create_var("@feed", type=VarType.FEED_MINIBATCH, persistable=True)
    block.create_var("@fetch", type=VarType.FETCH_LIST, persistable=True)
    for col, name in reversed(list(enumerate(feeds))):
        block.prepend_op("feed", {"X": "@feed"}, {"Out": name}, {"col": col})
    for col, name in enumerate(example.fetch):
        block.append_op("fetch", {"X": name}, {"Out": "@fetch"}, {"col": col})
    file = io.BytesIO()
    descs = persistable_vars(program)
    # A model file has all persistable variables and nothing else.
    if {v.name for v in descs} != set(example.params):
        return None
    for var in descs:
        write_variable(file, example.params[var.name], var.name)
    return program.serialize(), file.getvalue()
