"""oprack show and oprack run: what they print and return, on small models and on one that Paddle saved."""

from __future__ import annotations

import json
import re
import warnings
import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np
import pytest
from oprack import Program
from oprack.cli.main import main
from oprack.io import save_inference_model
from oprack.tensor import Scope

PROGRAMS = Path(__file__).parent / "data" / "programs"
SMALL = Path(__file__).parent / "data" / "small_models"
LEFT_OUT = [word for name in ("onednn", "numba", "onnxruntime") for word in ("--block", name)]
GRU = PROGRAMS / "gru_cls" / "model.pdmodel"
SVG = "{http://www.w3.org/2000/svg}"
X = np.array([[1, -2], [-3, 4], [5, 6]], np.float32)


class Command:
    """Runs `oprack ...` in this process and checks the exit code."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys
        self.err = ""

    def __call__(self, *arguments: object, code: int = 0) -> str:
        try:
            got = main([str(a) for a in arguments])
        except SystemExit as stop:  # argparse leaves this way
            got = stop.code
        out, self.err = self._capsys.readouterr()
        assert got == code, out + self.err
        assert "Traceback" not in self.err
        return out

    def json(self, *arguments: object, code: int = 0) -> dict:
        def refuse(constant: str) -> None:
            raise AssertionError(f"{constant} is no JSON")

        return json.loads(self(*arguments, "--json", code=code), parse_constant=refuse)


@pytest.fixture
def oprack(capsys: pytest.CaptureFixture[str]) -> Command:
    return Command(capsys)


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """y = relu(w + x) with LoD, total = sum of x."""
    program = Program()
    block = program.global_block()
    block.create_var("x", dtype="float32", shape=[-1, 2], lod_level=1)
    block.create_var("w", dtype="float32", shape=[2], persistable=True)
    for name in ("h", "y"):
        block.create_var(name, dtype="float32", shape=[-1, 2], lod_level=1)
    block.create_var("total", dtype="float32", shape=[])
    block.append_op("elementwise_add", {"X": "x", "Y": "w"}, {"Out": "h"}, {"axis": -1})
    block.append_op("relu", {"X": "h"}, {"Out": "y"})
    block.append_op("reduce_sum", {"X": "x"}, {"Out": "total"}, {"reduce_all": True})
    scope = Scope()
    scope.var("w").set(np.array([1, 0], np.float32))
    save_inference_model(tmp_path / "net", program, ["x"], ["y", "total"], scope)
    return tmp_path / "net"


@pytest.fixture
def feed(tmp_path: Path) -> str:
    np.save(tmp_path / "x.npy", X)
    return f"x={tmp_path / 'x.npy'}"


# show -----------------------------------------------------------------------------------------------------------------
def test_show_table(oprack: Command, model: Path) -> None:
    lines = oprack("show", model).splitlines()
    assert lines[0] == "6 ops in 1 block, 1 parameter of 8 bytes, in the format of Paddle 2.6.2"
    assert [re.split(r"  +", line) for line in lines[2:6]] == [
        ["", "VARIABLE", "DTYPE", "SHAPE", "LOD LEVELS"],
        ["input", "x", "float32", "[-1, 2]", "1"],
        ["output", "y", "float32", "[-1, 2]", "1"],
        ["output", "total", "float32", "[]", "0"],
    ]
    assert lines[7] == "OP               COUNT  PACK"
    assert lines[8] == "elementwise_add      1  oprack-math" and "relu                 1  oprack-nn" in lines
    assert oprack("show", f"{model}.pdmodel") == oprack("show", model.parent) == "\n".join(lines) + "\n"


def test_show_json_says_the_same(oprack: Command, model: Path) -> None:
    report = oprack.json("show", model)
    assert report["inputs"] == [{"name": "x", "dtype": "float32", "shape": [-1, 2], "lod_level": 1}]
    assert [v["name"] for v in report["outputs"]] == ["y", "total"]
    assert (report["ops"], report["blocks"], report["parameters"], report["parameter_bytes"]) == (6, 1, 1, 8)
    assert (report["version"], report["missing_ops"], report["newer_ops"]) == (2006002, [], [])
    assert {"op": "relu", "count": 1, "pack": "oprack-nn"} in report["op_types"] and "listing" not in report
    assert oprack.json("show", model, "--ops")["listing"][0][2] == "y = relu(X=['h'])"


def test_show_lists_every_op_of_every_block(oprack: Command) -> None:
    text = oprack("show", PROGRAMS / "while_loop", "--ops")
    assert re.search(r"^block 0:\n +0  ", text, re.M) and re.search(r"^block 1, inside block 0:\n +0  ", text, re.M)
    assert oprack.json("show", PROGRAMS / "while_loop")["blocks"] == len(re.findall(r"^block \d", text, re.M))


def test_passes_of_a_model(oprack: Command) -> None:
    text = oprack("passes", SMALL / "resnet.pdmodel", *LEFT_OUT)
    rows = {line.split()[0]: line.split() for line in text.splitlines() if " oprack" in line}
    assert text.startswith("PASS ")
    assert rows["fold_affine_into_conv"][1:7] == ["oprack-nn", "fuse", "9", "35", "35", "no"]
    assert rows["remove_identities"][1:7] == ["oprack-ir", "fold", "1", "36", "35", "yes"]
    assert text.endswith("\n36 ops became 35. Passes that are not strict may change the order of sums and rounding\n")
    report = oprack.json("passes", SMALL / "resnet.pdmodel", *LEFT_OUT)["passes"]
    assert [r["pass"] for r in report] == [*rows] and {r["matches"] for r in report} == {0, 1, 9}
    assert set(report[0]) == {
        "pass", "pack", "stage", "matches", "ops_before", "ops_after", "strict", "milliseconds", "error"
    }  # fmt: skip


def test_the_plan_of_a_model_is_the_code_that_runs(oprack: Command, model: Path, feed: str) -> None:
    text = oprack("passes", model, "--plan", "--feed", feed, "--lod", "x=0,1,3", *LEFT_OUT)
    assert "def segment(" in text and "elementwise_add" in text
    assert "def segment(" in oprack.json("passes", model, "--plan", "--feed", feed, "--lod", "x=0,1,3")["plan"]
    oprack("passes", model, "--plan", code=3)
    assert "--feed x=FILE.npy and --lod with its offsets: float32[-1, 2]" in oprack.err


def test_the_graph_of_a_model_is_drawn(oprack: Command, tmp_path: Path) -> None:
    picture = tmp_path / "new" / "gru.svg"
    assert oprack("graph", GRU, picture) == f"graph: {picture}\n"
    root = ET.parse(picture).getroot()
    names = [t.text for box in root.iter(f"{SVG}g") for t in [box.find(f"{SVG}text")] if t is not None]
    report = oprack.json("show", GRU)
    ops = [o["op"] for o in report["op_types"] for _ in range(o["count"]) if o["op"] not in ("feed", "fetch")]
    variables = [v["name"] for v in report["inputs"] + report["outputs"]]
    assert sorted(names) == sorted(ops + [n if len(n) <= 28 else n[:27] + "…" for n in variables])
    assert {"oprack-nn", "oprack-tensor"} <= {t.text for t in root.iter(f"{SVG}text")}, "the legend"
    lines = [p for p in root.iter(f"{SVG}path") if p.get("marker-end")]
    assert len(lines) >= len(names) - 1, "every box is reached"


def test_a_graph_has_every_block_and_what_goes_in_and_out(oprack: Command, tmp_path: Path) -> None:
    oprack("graph", PROGRAMS / "while_loop", tmp_path / "w.svg")
    names = ["".join(t.itertext()) for t in ET.parse(tmp_path / "w.svg").getroot().iter(f"{SVG}text")]
    outer, inner = names.index("block 0"), names.index("block 1, inside block 0")
    assert outer < names.index("while") < inner
    assert names[inner:].count("x") == 2, "block 1 reads x and writes it"
    assert "create_parameter_0.w_0" not in names and "X [4, 4]" in names, "parameters are lines of boxes"


def test_names_that_would_steer_a_terminal_or_break_xml(oprack: Command, tmp_path: Path) -> None:
    evil = '\x1b[31m<&">\x00\ufffe]]>'
    program = Program()
    block = program.global_block()
    for name in ("x", evil, "y"):
        block.create_var(name, dtype="float32", shape=[-1])
    block.append_op("feed", {"X": "feed"}, {"Out": "x"}, {"col": 0})
    block.append_op("relu", {"X": "x"}, {"Out": evil}, {"op_callstack": [evil]})
    block.append_op(evil, {"X": evil}, {"Out": "y"}, {"a": evil})
    block.append_op("fetch", {"X": evil}, {"Out": "fetch"}, {"col": 0})
    (tmp_path / "evil.pdmodel").write_bytes(program.serialize())
    text = oprack("show", tmp_path / "evil.pdmodel", "--ops", code=1)
    assert "\x1b" not in text and "\x00" not in text and "\\x1b[31m" in text
    oprack("graph", tmp_path / "evil.pdmodel", tmp_path / "evil.svg")
    ET.parse(tmp_path / "evil.svg")
    oprack("run", tmp_path / "evil.pdmodel", code=4)
    assert "\x1b" not in oprack.err and "\\x1b[31m" in oprack.err


def test_show_of_missing_and_newer_ops(oprack: Command, tmp_path: Path) -> None:
    program = Program()
    block = program.global_block()
    for op in ("no_such_op", "relu", "no_such_op", "nor_this"):
        block.append_op(op)
    program.desc.op_version_map["relu"] = 99
    program.desc.op_sources["nor_this"] = ("their-pack", "1.2")
    (tmp_path / "m.pdmodel").write_bytes(program.serialize())
    text = oprack("show", tmp_path / "m.pdmodel", code=1)
    assert "nor_this: no installed pack; the model says that it was saved with their-pack 1.2: `pip install" in text
    missing = oprack("ops", "--missing", tmp_path / "m.pdmodel", code=1)
    assert re.search(r"^nor_this +their-pack 1.2, as the model says$", missing, re.M) and "pip install" not in missing
    assert re.search(r"^no_such_op +2  MISSING$", text, re.M) and "no inputs and no outputs" in text
    assert "\n2 op type(s) of the program are missing:\n  no_such_op" in text and "no version" in text
    assert re.search(r"^op relu: saved with version 99, its pack knows \d+; upgrade the pack$", text, re.M)
    report = oprack.json("show", tmp_path / "m.pdmodel", code=1)
    assert report["missing_ops"] == ["no_such_op", "nor_this"] and report["newer_ops"][0]["saved_with"] == 99
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert oprack.json("show", GRU, "--block", "nn", code=1)["missing_ops"] != []


# run ------------------------------------------------------------------------------------------------------------------
def test_run_prints_outputs_and_time(oprack: Command, model: Path, feed: str) -> None:
    lines = oprack("run", model, "--feed", feed, "--lod", "x=0,1,3").splitlines()
    assert [re.split(r"  +", line) for line in lines[:3]] == [
        ["OUTPUT", "KIND", "DTYPE", "SHAPE", "LOD", "VALUES"],
        ["y", "tensor", "float32", "[3, 2]", "[[0, 1, 3]]", "0 .. 6"],
        ["total", "tensor", "float32", "[]", "11 .. 11"],
    ]
    assert re.fullmatch(r"first run \d+\.\d ms", lines[4]) and len(lines) == 5


def test_run_json_has_no_nan_in_it(oprack: Command, model: Path, tmp_path: Path) -> None:
    np.save(tmp_path / "nan.npy", np.array([[np.nan, 1], [np.inf, 2]], np.float32))
    arguments = ("run", model, "--feed", tmp_path / "nan.npy", "--lod", "0,2")
    report = oprack.json(*arguments)
    assert report["outputs"]["y"] == {
        "kind": "tensor", "dtype": "float32", "shape": [2, 2], "lod": [[0, 2]], "min": 0.0, "max": 2.0, "not_finite": 1
    }  # fmt: skip
    assert report["outputs"]["total"]["min"] is None and "profile" not in report
    text = oprack(*arguments)
    assert "0 .. 2, 1 not finite" in text and re.search(r"total .* 1 not finite$", text, re.M)
    oprack(*arguments, "--check-nan", code=3)
    assert "NanInfError: op elementwise_add: output Out (variable 'h') has 2 of 4" in oprack.err


def test_run_feeds_of_both_formats_write_the_same(oprack: Command, model: Path, feed: str, tmp_path: Path) -> None:
    np.savez(tmp_path / "all.npz", x=X, other=X)
    np.savez(tmp_path / "some=x.npz", x=X)
    lod = ("--lod", "x=0,1,3")
    for given in (feed, feed.removeprefix("x="), f"x={tmp_path / 'all.npz'}", tmp_path / "some=x.npz"):
        out = tmp_path / "deep" / "out.npz"
        text = oprack("run", model, "--feed", given, *lod, "--out", out, *(["--reference"] if given == feed else []))
        assert text.endswith(f"\noutputs: {out}\n")
        with np.load(out) as saved:
            assert set(saved.files) == {"y", "total", "y.lod.0"}
            assert (saved["y"] == np.maximum(X + np.float32([1, 0]), 0)).all() and saved["y.lod.0"].tolist() == [
                0,
                1,
                3,
            ]
        out.unlink()


def test_run_agrees_with_paddle(oprack: Command, tmp_path: Path) -> None:
    folder = GRU.parent
    feeds = ["--feed", f"ids={folder / 'in_0.npy'}", "--feed", f"len={folder / 'in_1.npy'}"]
    oprack("run", GRU, *feeds, "--out", tmp_path / "o.npz")
    meta = json.loads((folder / "meta.json").read_text())
    with np.load(tmp_path / "o.npz") as got:
        for fetch in meta["fetch"]:
            np.testing.assert_allclose(got[fetch["name"]], np.load(folder / fetch["file"]), atol=1e-5)


def test_run_repeats_profiles_and_traces(oprack: Command, model: Path, feed: str, tmp_path: Path) -> None:
    arguments = ("run", model, "--feed", feed, "--lod", "0,3", "--repeat", 4)
    text = oprack(*arguments, "--profile", "--trace", tmp_path / "t.json")
    assert re.search(r"^first run [\d.]+ ms, the next 3: median [\d.]+ ms, fastest [\d.]+ ms$", text, re.M)
    assert "\nOne more run, op by op:\nop " in text and re.search(r"^relu +1 ", text, re.M)
    assert text.endswith(f"trace: {tmp_path / 't.json'}\n")
    events = json.loads((tmp_path / "t.json").read_text())["traceEvents"]
    assert sum(e["name"] == "relu" for e in events) == 1, "the profile is of one run"
    report = oprack.json(*arguments, "--profile")
    assert len(report["milliseconds"]) == 4 and {row["op"] for row in report["profile"]} >= {"relu", "feed", "fetch"}


@pytest.mark.parametrize(
    ("arguments", "code", "text"),
    [
        (
            [],
            3,
            "FeedNameError: no --feed gives input 'x'; save arrays with numpy.save, and pass\n  --feed x=FILE.npy",
        ),
        (["--feed", "q=x.npy"], 3, "--feed gives 'q', which the model has no input for; no --feed gives input 'x'"),
        (
            ["--feed", "x=none.npy"],
            3,
            "FeedError: --feed x=none.npy: 'none.npy': No such file or directory; expect",
        ),
        (["--feed", "x=."], 3, "FeedError: --feed x=.: '.': Is a directory"),
        (["--feed", "x=text.npy"], 3, "'text.npy' can't be read as .npy or .npz without unpickling"),
        (["--feed", "x=broken.npz"], 3, "'broken.npz' can't be read as .npy or .npz without unpickling"),
        (["--feed", "x=objects.npy"], 3, "'objects.npy' can't be read as .npy or .npz without unpickling"),
        (["--feed", "objects.npz"], 3, "'objects.npz' can't be read as .npy or .npz without unpickling"),
        (["--feed", "x=huge.npy"], 3, "'huge.npy' can't be read as .npy or .npz without unpickling"),
        (
            ["--feed", "x=other.npz"],
            3,
            "--feed x=other.npz: the archive has 'z'; expected one named 'x'",
        ),
        (
            ["--feed", "x=wide.npy"],
            3,
            "FeedDtypeError: --feed x: the file has float64[2, 2]; the model expects float32; add --cast",
        ),
        (["--feed", "x=x.npy"], 3, "FeedLoDError: feed 'x': got 0 LoD levels; the program expects 1"),
        (["--feed", "x=x.npy"], 3, "On the command line: --lod NAME=0,2,5 with levels separated by ';'"),
        (["--feed", "x=x.npy", "--lod", "x=0,9"], 3, "FeedLoDError: feed 'x': level 0 ends at 9; expected 3"),
        (["--feed", "x=x.npy", "--lod", "x=0,a"], 3, "FeedLoDError: --lod x=0,a: expected [NAME=]0,3,7"),
        (["--feed", "x=x.npy", "--lod", "z=0,3"], 3, "--lod names 'z', which no --feed gives; expected one of 'x'"),
        (["--lod", "0,3"], 3, "--lod names 'x', which no --feed gives; expected --feed NAME=FILE as well"),
        (["--repeat", "0"], 2, "argument --repeat: '0' is no number of runs; expected 1 or more"),
        (["--repeat", "²"], 2, "is no number of runs"),
        (["--feed", "x=x.npy", "--lod", "0,3", "--out", "x.npy/out.npz"], 3, "x.npy"),
        (["--feed", "x=x.npy", "--lod", "0,3", "--trace", "no/such/folder"], 3, "FileNotFoundError"),
        (["--block", "nn", "--feed", "x=x.npy", "--lod", "0,3"], 4, "MissingPackError"),
    ],
)
def test_run_with_wrong_arguments(
    oprack: Command, model: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], code: int, text: str
) -> None:
    monkeypatch.chdir(model.parent)
    np.save("x.npy", X)
    np.save("wide.npy", X[:2].astype(np.float64))
    np.save("objects.npy", np.array([None]))
    np.savez("objects.npz", x=np.array([None]))
    np.savez("other.npz", z=X)
    Path("text.npy").write_text("1 2 3")
    Path("broken.npz").write_bytes(Path("other.npz").read_bytes()[:60])
    head = f"{{'descr': '<f4', 'fortran_order': False, 'shape': ({2**50}, 2), }}".ljust(117) + "\n"
    Path("huge.npy").write_bytes(b"\x93NUMPY\x01\x00" + len(head).to_bytes(2, "little") + head.encode() + bytes(8))
    oprack("run", model, *arguments, code=code)
    assert text in oprack.err


def test_an_input_of_several_has_to_be_named(oprack: Command, tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", X)
    oprack("run", GRU, "--feed", tmp_path / "a.npy", code=3)
    assert "the model has inputs 'ids', 'len'; expected --feed NAME=... with one of them" in oprack.err
    oprack("run", GRU, "--feed", f"ids={tmp_path / 'a.npy'}", "--lod", "0,3", code=3)
    assert "the model has inputs 'ids', 'len'; expected --lod NAME=... with one of them" in oprack.err


def test_run_applies_passes_unless_told_not_to(oprack: Command, tmp_path: Path) -> None:
    model = SMALL / "resnet.pdmodel"
    x = np.random.default_rng(0).standard_normal((2, 3, 32, 32), dtype=np.float32)
    np.save(tmp_path / "x.npy", x)

    def ops(*more: str) -> set[str]:
        report = oprack.json("run", model, "--feed", tmp_path / "x.npy", "--profile", *more)
        return {row["op"] for row in report["profile"]}

    assert "batch_norm" not in ops()
    assert "batch_norm" in ops("--no-passes") & ops("--reference") & ops("--check-nan")


def test_run_keeps_the_rewritten_model_where_it_is_told_to(
    oprack: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Numbers are the same, and no pass runs for what is kept."""
    x = np.random.default_rng(0).standard_normal((2, 3, 32, 32), dtype=np.float32)
    np.save(tmp_path / "x.npy", x)
    arguments = ("run", SMALL / "resnet.pdmodel", "--feed", tmp_path / "x.npy")
    plain = oprack.json(*arguments)["outputs"]
    assert oprack.json(*arguments, "--cache", tmp_path / "kept")["outputs"] == plain

    def fails(*_: object) -> None:
        raise AssertionError("passes run")

    with monkeypatch.context() as patch:
        patch.setattr("oprack.ir.models.optimize_model", fails)
        assert oprack.json(*arguments, "--cache", tmp_path / "kept")["outputs"] == plain
    oprack(*arguments, "--cache", tmp_path / "kept", "--no-passes", code=3)
    assert "--no-passes, --reference, --check-nan and OPRACK_REFERENCE run none" in oprack.err


def test_run_at_a_place(oprack: Command, model: Path, feed: str) -> None:
    arguments = ("run", model, "--feed", feed, "--lod", "x=0,1,3", "--place")
    assert oprack(*arguments, "cpu").startswith("OUTPUT")
    oprack(*arguments, "tpu", code=2)
    assert "'tpu' is no place; expected cpu, cuda, or cuda:N" in oprack.err
