"""print."""

from __future__ import annotations

import numpy as np
from oprack import Executor
from oprack.tensor import LoDTensor


def test_print(builder, capsys):
    b = builder()
    b.var("x")
    b.op("print", In="x", Out="y", first_n=2, message="here", summarize=3, print_tensor_layout=False)
    executor = Executor()
    x = LoDTensor(np.arange(5, dtype=np.float32), [[0, 2, 5]])
    for _ in range(3):
        (y,) = executor.run(b.program, {"x": x}, ["y"], return_numpy=False)
    assert np.array_equal(y.array, x.array) and y.lod == x.lod
    lines = ["here", "Variable: x", "lod: [[0, 2, 5]]", "shape: [5]", "dtype: float32", "data: [0.0, 1.0, 2.0]"]
    assert [s.strip() for s in capsys.readouterr().out.splitlines()] == lines * 2


def test_print_neither_steers_the_terminal_nor_forges_lines(builder, capsys):
    """A model's author chooses the message and the names."""
    b, name = builder(), "x\x1b[2J\nERROR: forged"
    b.var(name)
    b.op("print", In=name, Out="y", first_n=-1, message="a\x1b]52;c;AAAA\x07\nERROR: forged\u2028", summarize=1)
    b.run({name: np.zeros(1, np.float32)}, ["y"])
    out = capsys.readouterr().out
    assert all(c.isprintable() or c == "\n" for c in out)
    assert not [line for line in out.splitlines() if line.lstrip().startswith("ERROR")]
    assert "\\x1b]52" in out


def test_print_of_a_gradient_respects_the_phase(builder, capsys):
    b = builder()
    b.var("x")
    options = {"first_n": -1, "message": "", "summarize": -1, "print_phase": "FORWARD"}
    b.op("print", In="x", Out="y", is_forward=False, **options)
    b.run({"x": np.zeros(1, np.float32)}, ["y"])
    assert capsys.readouterr().out == ""
