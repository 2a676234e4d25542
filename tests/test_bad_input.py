"""Bad input from end to end: what a user of the public surface is told, by class, by message and by exit code.

Files that are broken byte by byte are in test_bad_files*.py; values that don't fit, op by op, in core/tests.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import oprack
import pytest
from oprack import Program, errors, inference
from oprack.cli.main import main
from oprack.io import load_inference_model, save_inference_model
from oprack.tensor import LoDTensor, Scope
from oprack.types import AttrType

IDS = np.array([[1], [2], [0]])


def small(**scale: Any) -> Program:
    """words -> rows of `table` -> scaled, by ops that keep the LoD."""
    program = Program()
    block = program.global_block()
    block.create_var("words", dtype="int64", shape=[-1, 1], lod_level=1)
    block.create_var("table", dtype="float32", shape=[3, 2], persistable=True)
    for name in ("rows", "out"):
        block.create_var(name, dtype="float32", shape=[-1, 2], lod_level=1)
    block.append_op("lookup_table", {"Ids": "words", "W": "table"}, {"Out": "rows"})
    block.append_op("scale", {"X": "rows"}, {"Out": "out"}, {"scale": 2.0} | scale)
    return program


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """A saved model without a fault: <folder>/m.pdmodel and m.pdiparams."""
    scope = Scope()
    scope.var("table").set(np.arange(6, dtype=np.float32).reshape(3, 2))
    folder = tmp_path / "model"
    save_inference_model(folder / "m", small(), ["words"], ["out"], scope)
    np.save(folder / "words.npy", IDS)
    return folder


def change(folder: Path, edit: Callable[[Program], None]) -> Path:
    """Alter the saved program."""
    file = folder / "m.pdmodel"
    program = Program.parse(file.read_bytes())
    edit(program)
    file.write_bytes(program.serialize())
    return folder


def predictor(folder: Path) -> inference.Predictor:
    return inference.create_predictor(inference.Config(str(folder / "m.pdmodel"), str(folder / "m.pdiparams")))


def refused(folder: Path, error: type[Exception], *parts: str) -> None:
    """create_predictor raises `error`, and its message has all parts."""
    with pytest.raises(error) as raised:
        predictor(folder)
    assert type(raised.value) is error
    for part in parts:
        assert part in str(raised.value), str(raised.value)


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """Runs a command, checks its exit code, and returns what it said on stderr."""

    def call(code: int, *arguments: object) -> str:
        got = main([str(a) for a in arguments])
        out, err = capsys.readouterr()
        assert got == code, out + err
        assert "Traceback" not in err and (code == 0) == (err == "")
        return err

    return call


def run_arguments(folder: Path) -> list[object]:
    return ["run", folder / "m.pdmodel", "--feed", folder / "words.npy", "--lod", "0,1,3"]


def test_the_model_itself_is_fine(model: Path, cli: Callable[..., str]) -> None:
    (out,) = predictor(model).run([LoDTensor(IDS, [[0, 1, 3]])])
    assert out.tolist() == [[4, 6], [8, 10], [0, 2]]
    cli(0, *run_arguments(model))
    cli(0, "show", model)


# Programs -------------------------------------------------------------------------------------------------------------
def nest(program: Program, depth: int) -> None:
    """Put a chain of blocks into the program, each run by a conditional_block of the one before."""
    block = program.global_block()
    block.create_var("yes", dtype="bool", shape=[1])
    for _ in range(depth):
        inner = program.desc.append_block(block)
        op = block.insert_op(len(block.ops) - 1 if block.idx == 0 else 0, "conditional_block", {"Cond": "yes"})
        op.set_attr("sub_block", inner.idx, AttrType.BLOCK)
        op.set_attr("is_scalar_condition", True)
        block = inner


def test_a_cycle_of_sub_blocks(model: Path, cli: Callable[..., str]) -> None:
    def edit(program: Program) -> None:
        nest(program, 2)
        back = program.blocks[2].append_op("conditional_block", {"Cond": "yes"})
        back.set_attr("sub_block", 1, AttrType.BLOCK)

    change(model, edit)
    refused(model, errors.BlockCycleError, "sub-blocks of the blocks run in a circle: 1 -> 2 -> 1; expected a tree")
    for command in (["show", model], run_arguments(model)):
        err = cli(3, *command)
        assert "BlockCycleError: " in err and "sub-blocks of the blocks run in a circle" in err


def test_blocks_nested_too_deep(model: Path, cli: Callable[..., str]) -> None:
    change(model, lambda program: nest(program, 1000))
    refused(model, errors.BlockDepthError, "blocks are nested 1001 deep; expected at most 64: flatten its loops")
    assert "BlockDepthError" in cli(3, *run_arguments(model))
    cli(0, "show", model)  # describing it needs no stack


def test_an_unknown_op_suggests_others(cli: Callable[..., str]) -> None:
    with pytest.raises(errors.UnknownOpError, match=r"(?s)reluu.*relu") as raised:
        oprack.op_info("reluu")
    assert type(raised.value) is errors.UnknownOpError
    assert "did you mean" in cli(1, "op", "reluu")


def test_all_missing_ops_are_told_at_once(model: Path, cli: Callable[..., str]) -> None:
    def edit(program: Program) -> None:
        nest(program, 1)
        program.blocks[1].append_op("op_of_a_branch", {}, {})
        program.global_block().ops[1].type = "lookup_tabel"

    change(model, edit)
    refused(model, errors.MissingPackError, "lookup_tabel", "op_of_a_branch", "2 op type", "lookup_table")
    err = cli(4, *run_arguments(model))
    assert "MissingPackError" in err and "lookup_tabel" in err and "op_of_a_branch" in err
    program = Program.parse((model / "m.pdmodel").read_bytes())
    with pytest.raises(errors.MissingPackError, match="op_of_a_branch"):
        oprack.Executor().run(program, {"words": IDS}, scope=Scope())


def test_an_attribute_out_of_range(model: Path, cli: Callable[..., str]) -> None:
    def edit(program: Program) -> None:
        op = program.global_block().append_op("dropout", {"X": "rows"}, {"Out": "out"})
        op.set_attr("dropout_prob", 1.5)
        op.set_attr("op_callstack", ['  File "net.py", line 7, in net', "    dropout(rows, 1.5)"])

    change(model, edit)
    refused(
        model,
        errors.AttributeValueError,
        "op dropout: attribute 'dropout_prob' is 1.5; expected",
        'op number 4 of block 0, created by File "net.py", line 7, in net: dropout(rows, 1.5)',
    )
    assert "AttributeValueError: op dropout" in cli(3, *run_arguments(model))


def test_an_attribute_of_another_type(model: Path) -> None:
    change(model, lambda p: p.global_block().ops[1].set_attr("padding_idx", "first", AttrType.STRING))
    refused(model, errors.AttributeValueError, "op lookup_table: attribute 'padding_idx' is 'first'; expected an int")


@pytest.mark.parametrize("size", [0, 1, 40, -1])
def test_a_truncated_program(model: Path, cli: Callable[..., str], size: int) -> None:
    file = model / "m.pdmodel"
    file.write_bytes(file.read_bytes()[:size])
    refused(model, errors.CorruptModelError, f"{str(file)!r}: ", "are no program: ", "Expected the whole content of a")
    for command in (["show", model], run_arguments(model)):
        assert "CorruptModelError" in cli(3, *command)


def test_files_of_another_kind(model: Path, cli: Callable[..., str]) -> None:
    refusal = "are no program"
    for wrong in ("m.pdiparams", "words.npy"):
        with pytest.raises(errors.CorruptModelError, match=refusal):
            inference.create_predictor(inference.Config(str(model / wrong), str(model / "m.pdiparams")))
        assert refusal in cli(3, "show", model / wrong)
    assert "NotFoundError" in cli(3, "show", model / "other")
    assert "NotFoundError" in cli(3, "run", model / "other")


# Parameters -----------------------------------------------------------------------------------------------------------
def test_a_missing_parameter_file(model: Path, cli: Callable[..., str]) -> None:
    (model / "m.pdiparams").unlink()
    refused(model, errors.MissingParameterError, "m.pdiparams' does not exist; expected the combined file", "'table'")
    assert "MissingParameterError" in cli(3, *run_arguments(model))
    assert main(["show", str(model)]) == 1  # the program alone is described, and what it lacks


def test_a_parameter_that_is_not_in_the_file(model: Path, cli: Callable[..., str]) -> None:
    change(model, lambda p: p.global_block().create_var("more", dtype="float32", shape=[1], persistable=True) and None)
    refused(model, errors.CorruptParameterError, "variable 'table' (at offset 50 of", "but only 0 are left; expected a")
    assert "CorruptParameterError" in cli(3, *run_arguments(model))


@pytest.mark.parametrize(
    ("size", "error"),
    [(3, errors.CorruptParameterError), (30, errors.OversizedTensorError), (-1, errors.OversizedTensorError)],
)
def test_truncated_parameters(model: Path, cli: Callable[..., str], size: int, error: type[Exception]) -> None:
    file = model / "m.pdiparams"
    file.write_bytes(file.read_bytes()[:size])
    refused(
        model, error, "variable 'table' (at offset 0 of", "m.pdiparams", "expected a complete file, so save or copy"
    )
    assert error.__name__ in cli(3, *run_arguments(model))


def test_a_variable_whose_name_leads_outside(model: Path, cli: Callable[..., str]) -> None:
    secret = model.parent / "x"
    secret.write_bytes((model / "m.pdiparams").read_bytes())

    def edit(program: Program) -> None:
        program.global_block().rename_var("table", "../../x")

    change(model, edit)
    (model / "m.pdmodel").rename(model / "__model__")  # one file per variable
    (model / "m.pdiparams").unlink()
    with pytest.raises(errors.UnsafeNameError, match=r"'\.\./\.\./x'"):
        inference.create_predictor(inference.Config(str(model)))
    assert "UnsafeNameError" in cli(3, "run", model, "--feed", model / "words.npy", "--lod", "0,1,3")


# Feeds ----------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("feed", "error", "text"),
    [
        ({"word": IDS}, errors.FeedNameError, "'word' is no variable of the program. feed: input 'words' was not fed"),
        (
            {"words": (IDS.astype("int32"), [[0, 3]])},
            errors.FeedDtypeError,
            "got int32[3, 1]; the program expects int64",
        ),
        (
            {"words": (IDS[:, 0], [[0, 3]])},
            errors.FeedShapeError,
            "got shape [3] of rank 1; the program expects rank 2",
        ),
        ({"words": IDS}, errors.FeedLoDError, "got 0 LoD levels; the program expects 1; pass oprack.LoDTensor(array"),
        ({"words": (IDS, [[0, 1], [0, 3]])}, errors.FeedLoDError, "got 2 LoD levels; the program expects 1"),
        ({"words": (IDS, [[0, 2]])}, errors.FeedLoDError, "level 0 ends at 2; expected 3, the tensor's rows"),
    ],
)
def test_feeds_that_do_not_fit_a_loaded_model(model: Path, feed: Any, error: type[Exception], text: str) -> None:
    scope = Scope()
    loaded = load_inference_model(model / "m", scope)
    for prepared in (False, True):
        with pytest.raises(error) as raised:
            oprack.Executor(prepared=prepared).run(loaded.program, feed, scope=scope, return_numpy=False)
        assert type(raised.value) is error and text in str(raised.value)
    assert scope.kids() == [], "a run that fails leaves no scope behind"


def test_a_fetch_that_is_not_there(model: Path) -> None:
    scope = Scope()
    loaded = load_inference_model(model / "m", scope)
    with pytest.raises(errors.FetchNameError, match=r"fetch 'ouy': .*did you mean out"):
        oprack.Executor().run(loaded.program, {"words": (IDS, [[0, 3]])}, ["ouy"], scope)
    with pytest.raises(errors.FetchNameError, match=r"fetch 'nothing': .*no such variable; its last ops write .*'out'"):
        oprack.Executor().run(loaded.program, {"words": (IDS, [[0, 3]])}, ["nothing"], scope)


# Kernels --------------------------------------------------------------------------------------------------------------
def test_a_kernel_that_fails_is_told_with_its_op_on_every_run(model: Path, cli: Callable[..., str]) -> None:
    """The first run takes the reference path, and the others a plan: all say the same, and a good run works again."""
    change(
        model, lambda p: p.global_block().ops[1].set_attr("op_callstack", ['  File "net.py", line 3, in f', "  x()"])
    )
    runner, good, bad = predictor(model), LoDTensor(IDS, [[0, 1, 3]]), LoDTensor(IDS + 5, [[0, 1, 3]])
    told = []
    for _ in range(3):
        (out,) = runner.run([good])
        assert out.shape == (3, 2)
        with pytest.raises(errors.OprackError) as raised:
            runner.run([bad])
        told.append(str(raised.value))
    assert len(set(told)) == 1, told
    for part in (
        "lookup_table", "Ids = 'words': int64[3, 1] lod=[[0, 1, 3]]", "W = 'table': float32[3, 2]",
        'created by File "net.py", line 3, in f',
    ):  # fmt: skip
        assert part in told[0], told[0]
    np.save(model / "words.npy", IDS + 5)
    assert "lookup_table" in cli(3, *run_arguments(model))
