"""Saves are atomic, and names of variables do not lead out of the model's directory."""

from __future__ import annotations

import os

import numpy as np
import pytest
from oprack.errors import MissingParameterError, UnsafeNameError
from oprack.io import load_vars, save_inference_model, save_vars
from oprack.io.atomic import AtomicSave, write_atomic
from oprack.io.parameters import variable_path
from oprack.program import Program
from oprack.tensor import Scope


def program_of(*names: str) -> Program:
    program = Program()
    for name in names:
        program.global_block().create_var(name, dtype="float32", shape=[2], persistable=True)
    return program


def scope_of(*names: str) -> Scope:
    scope = Scope()
    for name in names:
        scope.var(name).set(np.ones(2, "float32"))
    return scope


def contents(directory) -> dict[str, bytes]:
    return {str(p.relative_to(directory)): p.read_bytes() for p in directory.rglob("*") if p.is_file()}


def test_files_appear_together(tmp_path):
    (tmp_path / "a").write_bytes(b"old")
    with AtomicSave() as save:
        with save.open(tmp_path / "a") as file:
            file.write(b"new")
        with save.open(tmp_path / "sub" / "b") as file:
            file.write(b"b")
        assert (tmp_path / "a").read_bytes() == b"old"
    assert contents(tmp_path) == {"a": b"new", "sub/b": b"b"}
    write_atomic(tmp_path / "a", b"newer")
    assert (tmp_path / "a").read_bytes() == b"newer"


def test_a_failure_leaves_the_old_files(tmp_path):
    (tmp_path / "a").write_bytes(b"old")
    with pytest.raises(RuntimeError, match="stop"), AtomicSave() as save:
        with save.open(tmp_path / "a") as file:
            file.write(b"new")
        with save.open(tmp_path / "b") as file:
            file.write(b"half")
            raise RuntimeError("stop")
    assert contents(tmp_path) == {"a": b"old"}


def test_a_new_file_has_the_usual_mode(tmp_path):
    write_atomic(tmp_path / "a", b"")
    (tmp_path / "plain").touch()
    assert (tmp_path / "a").stat().st_mode == (tmp_path / "plain").stat().st_mode


def test_a_save_that_fails_in_the_middle_leaves_the_old_model(tmp_path):
    """The second variable's value has no file format, which is found after the first was written."""
    program = program_of("a", "b")
    program.desc.version = 2006002
    program.global_block().create_var("y", dtype="float32", shape=[2])
    program.global_block().append_op("elementwise_add", {"X": "a", "Y": "b"}, {"Out": "y"})
    save_inference_model(tmp_path / "m", program, [], ["y"], scope_of("a", "b"))
    save_vars(tmp_path / "vars", program, scope_of("a", "b"))
    before = contents(tmp_path)
    assert set(before) == {"m.pdmodel", "m.pdiparams", "vars/a", "vars/b"}
    scope = scope_of("a")
    scope.find_var("a").get().array[:] = 5
    scope.var("b").set(["no tensor"])
    for save in (
        lambda: save_inference_model(tmp_path / "m", program, [], ["y"], scope),
        lambda: save_vars(tmp_path / "vars", program, scope),
        lambda: save_vars(tmp_path / "vars", program, scope, filename="a"),
    ):
        with pytest.raises(ValueError, match="variable 'b' holds a list"):
            save()
        assert contents(tmp_path) == before


def test_a_failed_move_leaves_no_temporary_file(tmp_path, monkeypatch):
    def refuse(*_):
        raise OSError("disk on fire")

    monkeypatch.setattr(os, "replace", refuse)
    with pytest.raises(OSError, match="disk on fire"):
        write_atomic(tmp_path / "a", b"x")
    assert contents(tmp_path) == {}


BAD_NAMES = [
    ("../x", "part '..'"),
    ("a/../../x", "part '..'"),
    ("..", "part '..'"),
    ("a/./b", "part '..' or '.'"),
    ("..\\x", "part '..'"),
    ("/etc/passwd", "absolute path"),
    ("\\\\server\\share", "absolute path"),
    ("C:\\x", "begins with a drive"),
    ("c:x", "begins with a drive"),
    ("", "the name is empty"),
    ("a//b", "empty part"),
    ("a/", "empty part"),
    ("x\0y", "NUL"),
    ("n" * 300, "more than 255 bytes"),
    ("é" * 130, "more than 255 bytes"),
]


@pytest.mark.parametrize(("name", "why"), BAD_NAMES, ids=[repr(n)[:20] for n, _ in BAD_NAMES])
def test_names_that_lead_out(tmp_path, name, why):
    inside = tmp_path / "model"
    inside.mkdir()
    (tmp_path / "x").write_bytes(b"not part of the model")
    with pytest.raises(UnsafeNameError, match=why):
        variable_path(inside, name)
    with pytest.raises(UnsafeNameError, match="can't be a file in"):
        load_vars(inside, program_of(name), Scope())
    with pytest.raises(UnsafeNameError, match="can't be a file in"):
        save_vars(inside, program_of(name), scope_of(name))
    assert contents(tmp_path) == {"x": b"not part of the model"}


@pytest.mark.parametrize("name", ["fc_0.w_0", "a/b/c", "..x", "x..", "name with spaces", "层", "@GRAD", "a\\b"])
def test_names_that_stay_inside(tmp_path, name):
    save_vars(tmp_path, program_of(name), scope_of(name))
    scope = Scope()
    load_vars(tmp_path, program_of(name), scope)
    assert scope.find_var(name).get().array.tolist() == [1.0, 1.0]


def test_a_combined_file_takes_any_name(tmp_path):
    program = program_of("../x", "/y")
    save_vars(tmp_path, program, scope_of("../x", "/y"), filename="all")
    scope = Scope()
    load_vars(tmp_path, program, scope, filename="all")
    assert sorted(scope.local_var_names()) == ["../x", "/y"]
    assert set(contents(tmp_path)) == {"all"}


def test_symbolic_links(tmp_path):
    outside, inside = tmp_path / "outside", tmp_path / "model"
    save_vars(outside, program_of("w"), scope_of("w"))
    save_vars(inside, program_of("real"), scope_of("real"))
    (inside / "w").symlink_to(outside / "w")
    (inside / "dir").symlink_to(outside)
    (inside / "loop").symlink_to(inside / "loop")
    (inside / "alias").symlink_to(inside / "real")
    for name in ("w", "dir/w", "loop"):
        with pytest.raises(UnsafeNameError, match="is a symbolic link that leads out of"):
            load_vars(inside, program_of(name), Scope())
    before = contents(outside)
    with pytest.raises(UnsafeNameError):
        save_vars(inside, program_of("dir/w"), scope_of("dir/w"))
    assert contents(outside) == before
    load_vars(inside, program_of("alias"), Scope())


def test_a_directory_or_a_pipe_is_no_parameter_file(tmp_path):
    (tmp_path / "w").mkdir()
    os.mkfifo(tmp_path / "pipe")
    for name in ("w", "pipe"):
        with pytest.raises(ValueError, match="is no regular file; expected a parameter file"):
            load_vars(tmp_path, program_of(name), Scope())
    with pytest.raises(MissingParameterError):
        load_vars(tmp_path, program_of("w/x"), Scope())
