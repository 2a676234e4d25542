"""Command lines that run models: what is fed, in which dtypes ops compute, and what is said of files that lack."""

from __future__ import annotations

import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from oprack import LoDTensor, Program, Scope
from oprack.cli import output
from oprack.cli.main import main
from oprack.errors import CorruptParameterError
from oprack.inference import Config, create_predictor
from oprack.io import save_inference_model
from oprack.io.streams import read_combined, skip_variable, write_variable
from oprack.runtime.feed_fetch import blamed
from oprack.types import VarType

SMALL = Path(__file__).parent / "data" / "small_models"
NET = SMALL / "resnet.pdmodel"
GRU = Path(__file__).parent / "data" / "programs" / "gru_cls" / "model.pdmodel"


def run(capsys: pytest.CaptureFixture[str], *words: object, code: int = 0) -> tuple[str, str]:
    try:
        got = main([str(word) for word in words])
    except SystemExit as stop:
        got = stop.code
    out, err = capsys.readouterr()
    assert got == code, out + err
    return out, err


@pytest.fixture
def image(tmp_path: Path) -> np.ndarray:
    return np.random.default_rng(0).random((2, 3, 32, 32))


# What is fed ----------------------------------------------------------------------------------------------------------
def test_cast_converts_what_numpy_saves(capsys: Any, tmp_path: Path, image: np.ndarray) -> None:
    np.save(tmp_path / "wide.npy", image)
    np.save(tmp_path / "plain.npy", image.astype(np.float32))
    _, err = run(capsys, "run", NET, "--feed", tmp_path / "wide.npy", code=3)
    assert "--feed image: the file has float64[2, 3, 32, 32]; the model expects float32; add --cast" in err
    for name, cast in (("wide", ["--cast"]), ("plain", [])):
        run(capsys, "run", NET, "--feed", tmp_path / f"{name}.npy", *cast, "--out", tmp_path / f"{name}.npz")
    wide, plain = (np.load(tmp_path / f"{name}.npz") for name in ("wide", "plain"))
    assert all(np.array_equal(wide[key], plain[key]) for key in plain.files) and plain.files


@pytest.mark.parametrize(
    ("array", "says"),
    [
        (np.array([0.5]), "--cast would change values of float64 that int64 does not have"),
        (np.array([2.0**70]), "--cast would change values"),
        (np.array([np.nan]), "--cast would change values"),
        (np.array(["1"]), "the file has <U1; expected numbers"),
    ],
)
def test_cast_loses_no_whole_numbers(capsys: Any, tmp_path: Path, array: np.ndarray, says: str) -> None:
    program = Program()
    for name in ("x", "y"):
        program.global_block().create_var(name, dtype="int64", shape=[-1])
    program.global_block().append_op("scale", {"X": "x"}, {"Out": "y"}, {"scale": 2.0})
    save_inference_model(tmp_path / "net", program, ["x"], ["y"], Scope())
    np.save(tmp_path / "x.npy", array)
    assert says in run(capsys, "run", tmp_path / "net", "--feed", tmp_path / "x.npy", "--cast", code=3)[1]
    np.save(tmp_path / "x.npy", np.array([3.0, -4.0]))
    run(capsys, "run", tmp_path / "net", "--feed", tmp_path / "x.npy", "--cast", "--out", tmp_path / "y.npz")
    assert np.load(tmp_path / "y.npz")["y"].tolist() == [6, -8]


def test_missing_inputs_are_told_with_dtype_and_dims(capsys: Any) -> None:
    _, err = run(capsys, "run", GRU, code=3)
    assert "no --feed gives inputs 'ids', 'len'" in err
    assert "  --feed ids=FILE.npy: int64[-1, -1]\n  --feed len=FILE.npy: int64[-1]\n-1 = any size" in err


@pytest.mark.parametrize("command", [["run"], ["passes", "--plan"]])
def test_a_feed_with_other_dims_is_blamed(capsys: Any, tmp_path: Path, command: list[str]) -> None:
    np.save(tmp_path / "x.npy", np.zeros((1, 4, 32, 32), np.float32))
    _, err = run(capsys, command[0], NET, *command[1:], "--feed", tmp_path / "x.npy", code=3)
    blame = "FeedShapeError: feed 'image': got shape [1, 4, 32, 32]; the program declares [-1, 3, -1, -1]"
    assert err.startswith(f"oprack {command[0]}: {blame} (-1 = any size), and the run failed.\nop ")


def test_predictors_blame_feeds_too_and_other_errors_stay() -> None:
    predictor = create_predictor(Config(str(NET)))
    from oprack.errors import FeedShapeError, InvalidArgumentError

    with pytest.raises(FeedShapeError, match=r"feed 'image': got shape \[1, 4, 32, 32\]; the program declares"):
        predictor.run([np.zeros((1, 4, 32, 32), np.float32)])
    assert predictor.run([np.zeros((1, 3, 32, 32), np.float32)])[0].shape == (1, 10)
    program = Program()
    program.global_block().create_var("x", dtype="float32", shape=[-1, 3])
    error, fits = InvalidArgumentError("x"), {"x": LoDTensor(np.zeros((2, 3), np.float32))}
    assert blamed(error, program.desc.blocks[0], fits) is error
    assert blamed(ValueError("x"), program.desc.blocks[0], {"x": np.zeros(1)}).__class__ is ValueError


# How ops compute ------------------------------------------------------------------------------------------------------
def test_precisions_that_change_nothing_say_why(capsys: Any, tmp_path: Path, image: np.ndarray) -> None:
    np.save(tmp_path / "x.npy", image.astype(np.float32))
    _, err = run(capsys, "run", NET, "--feed", tmp_path / "x.npy", "--int8")
    assert "--int8 has no effect: the model quantises nothing (`oprack quantize` makes one that does)" in err
    _, err = run(capsys, "passes", NET, "--bf16", "--block", "onednn")
    assert "--bf16 has no effect: no installed plugin computes in bfloat16; pip install oprack-onednn" in err
    _, err = run(capsys, "run", NET, "--feed", tmp_path / "x.npy", "--int8", "--reference", code=3)
    assert "--int8: passes do that, and --no-passes, --reference, --check-nan and OPRACK_REFERENCE run none" in err


def test_int8_runs_what_quantize_wrote(capsys: Any, tmp_path: Path, image: np.ndarray) -> None:
    np.save(tmp_path / "x.npy", image)
    fed = ["--cast", "--feed", tmp_path / "x.npy"]
    run(capsys, "quantize", NET, "--data", tmp_path / "x.npy", "--cast", "--out", tmp_path / "int8")
    assert "quantize_linear" in run(capsys, "run", tmp_path / "int8", *fed, "--profile")[0]
    out, err = run(capsys, "run", tmp_path / "int8", *fed, "--int8", "--profile")
    assert "onednn_quantized_conv2d" in out or "this CPU lacks VNNI" in err or "no installed plugin" in err


@pytest.mark.parametrize("threads", ["0", "-1", "many", "1025"])
def test_threads_are_a_number(capsys: Any, threads: str) -> None:
    assert "expected 1 to 1024" in run(capsys, "run", NET, f"--threads={threads}", code=2)[1]


@pytest.mark.filterwarnings("ignore:.*threadpoolctl")
def test_threads_hold_while_the_model_runs(
    capsys: Any, tmp_path: Path, image: np.ndarray, monkeypatch: pytest.MonkeyPatch
) -> None:
    from oprack.inference import predictor

    seen: list[object] = []

    class Limits(predictor.ThreadLimits):
        def __call__(self) -> Any:
            seen.append(self._count)
            return super().__call__()

    monkeypatch.setattr(predictor, "ThreadLimits", Limits)
    np.save(tmp_path / "x.npy", image.astype(np.float32))
    run(capsys, "run", NET, "--feed", tmp_path / "x.npy", "--threads", "1")
    assert seen == [1]


# Parameter files ------------------------------------------------------------------------------------------------------
def _copy(folder: Path, size: int | None, more: bytes = b"") -> Path:
    shutil.copy(NET, folder / "net.pdmodel")
    if size is not None:
        data = NET.with_suffix(".pdiparams").read_bytes()
        (folder / "net.pdiparams").write_bytes(data[: size or len(data)] + more)
    return folder / "net.pdmodel"


@pytest.mark.parametrize(
    ("size", "more", "says"),
    [
        (None, b"", "does not exist; expected the combined file of 47 persistable variables: "),
        (20_000, b"", "are left; expected a complete file"),
        (0, b"more", "4 of 2"),
        (1, b"", "expected a complete file"),
    ],
)
def test_show_notices_parameter_files(capsys: Any, tmp_path: Path, size: int | None, more: bytes, says: str) -> None:
    model = _copy(tmp_path, size, more)
    out, _ = run(capsys, "show", model, code=1)
    assert "\nthe model can't run: " in out and says in out
    assert "and 42 more" in out or size is not None
    assert "conv2d" in out, "what is known is told"


def test_show_finds_nothing_wrong_with_whole_models(capsys: Any) -> None:
    assert "can't run" not in run(capsys, "show", NET)[0]
    assert "can't run" not in run(capsys, "show", GRU.parent.parent / "while_loop")[0]


def test_one_file_for_each_parameter_is_looked_at(capsys: Any, tmp_path: Path) -> None:
    program = Program()
    block = program.global_block()
    block.create_var("w", dtype="float32", shape=[3], persistable=True)
    for name in ("x", "y"):
        block.create_var(name, dtype="float32", shape=[3])
    block.append_op("feed", {"X": "feed"}, {"Out": "x"}, {"col": 0})
    block.append_op("elementwise_add", {"X": "x", "Y": "w"}, {"Out": "y"})
    block.append_op("fetch", {"X": "y"}, {"Out": "fetch"}, {"col": 0})
    (tmp_path / "__model__").write_bytes(program.serialize())
    assert "1 of 1 persistable variables have no file" in run(capsys, "show", tmp_path, code=1)[0]
    with open(tmp_path / "w", "wb") as file:
        write_variable(file, LoDTensor(np.zeros(4, np.float32)), "w")
    assert "got float32[4], but the program expects float32[3]" in run(capsys, "show", tmp_path, code=1)[0]
    with open(tmp_path / "w", "wb") as file:
        write_variable(file, LoDTensor(np.zeros(3, np.float32)), "w")
    run(capsys, "show", tmp_path)


def test_skipping_goes_as_far_as_reading() -> None:
    data = NET.with_suffix(".pdiparams").read_bytes()
    dtype, dims, end = skip_variable(data, 0, VarType.LOD_TENSOR, name="a", source="b")
    value = read_combined(data[:end], [("a", VarType.LOD_TENSOR)])["a"]
    assert (value.dtype, tuple(value.shape)) == (dtype, dims)
    with pytest.raises(CorruptParameterError, match="only"):
        skip_variable(data[: end - 1], 0, VarType.LOD_TENSOR, name="a", source="b")


# The command line itself ----------------------------------------------------------------------------------------------
def test_options_that_are_near(capsys: Any) -> None:
    _, err = run(capsys, "run", NET, "--fead", "x", code=2)
    assert err.startswith("usage: oprack run ") and "unrecognized arguments: --fead x (did you mean --feed?)" in err
    _, err = run(capsys, "show", NET, "--frobnicate=1", code=2)
    assert "unrecognized arguments: --frobnicate=1\n" in err


_BASH = """\
eval "$(oprack completion bash)"
COMP_LINE="$1" COMP_POINT=${#1} COMP_WORDS=($1) COMP_TYPE=9
[[ "$1" == *" " ]] && COMP_WORDS+=("")
COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
_python_argcomplete oprack
echo "${COMPREPLY[@]}"
"""


@pytest.mark.skipif(shutil.which("bash") is None, reason="no bash is installed here")
@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        ("oprack qua", {"quantize"}),
        ("oprack run --int", {"--int8"}),
        ("oprack op softma", {"softmax", "softmax_grad"}),
        ("oprack packs --block oned", {"onednn"}),
    ],
)
def test_a_shell_completes(line: str, wanted: set[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:/usr/bin:/bin")
    done = subprocess.run(["bash", "-c", _BASH, "bash", line], capture_output=True, text=True, timeout=60, check=True)
    assert wanted <= set(done.stdout.split()), done.stdout + done.stderr


@pytest.mark.parametrize(("shell", "word"), [("bash", "complete "), ("zsh", "compdef"), ("fish", "complete --command")])
def test_scripts_for_shells(capsys: Any, shell: str, word: str) -> None:
    assert word in run(capsys, "completion", shell)[0]


def test_progress_is_for_terminals_alone(capsys: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    items = [1, 2, 3]
    assert output.track(items, "counting") is items
    with output.working("waiting"):
        pass
    assert capsys.readouterr() == ("", "")
    monkeypatch.setenv("FORCE_COLOR", "1")  # what rich takes for a terminal
    assert list(output.track(items, "counting")) == items
    out, err = capsys.readouterr()
    assert out == "" and "counting" in err
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setattr(output, "_PATIENCE", 0.0)
    with output.working("waiting"):
        import time

        time.sleep(0.3)
        print("printed meanwhile")
    out, err = capsys.readouterr()
    assert out == "printed meanwhile\n" and "waiting ..." in err


def test_an_archive_that_would_fill_the_memory_is_refused(capsys: Any, tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "x.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        with archive.open("image.npy", "w", force_zip64=True) as member:
            header = {"descr": "|u1", "fortran_order": False, "shape": (1100 << 20,)}
            np.lib.format.write_array_header_1_0(member, header)
            for _ in range(1100):
                member.write(bytes(1 << 20))
    _, err = run(capsys, "run", NET, "--feed", tmp_path / "x.npz", code=3)
    assert "would unpack to 1,153,433," in err and "numpy.savez" in err
    np.savez_compressed(tmp_path / "small.npz", image=np.zeros((1, 3, 32, 32), np.float32))
    run(capsys, "run", NET, "--feed", tmp_path / "small.npz", "--out", tmp_path / "y.npz")
