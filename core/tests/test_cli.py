"""The oprack command: what it prints and what it returns, in an interpreter that sees only fixture packs."""

from __future__ import annotations

import json
import re
import subprocess
import sys

import pack_site
import pytest
from oprack.cli import main as cli

ALL = ("good", "missing_module", "raises_on_import", "bad_manifest", "duplicate_op", "newer_schema", "bad_signature")


class Command:
    """Runs `oprack ...` and checks the exit code."""

    def __init__(self, path, *packs):
        self.cwd = path
        site = pack_site.install(path / "site", *packs)
        self.paths = [site, pack_site.libraries(path / "libraries")]

    def __call__(self, *arguments, code=0, **variables):
        env = pack_site.environment(self.paths, **variables)
        done = pack_site.run_python("-m", "oprack", *arguments, env=env, cwd=self.cwd)
        assert done.returncode == code, done.stdout + done.stderr
        assert "Traceback" not in done.stderr
        return done

    def json(self, *arguments, **settings):
        return json.loads(self(*arguments, "--json", **settings).stdout)


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    return Command(tmp_path_factory.mktemp("alone"), "good")


@pytest.fixture(scope="module")
def crowd(tmp_path_factory):
    return Command(tmp_path_factory.mktemp("crowd"), *ALL)


# packs ----------------------------------------------------------------------------------------------------------------
def test_packs_lists_good_and_broken_ones_without_failing(crowd):
    done = crowd("packs")
    rows = {line.split()[0]: line.split() for line in done.stdout.splitlines()[1:] if line}
    assert rows["good"][1:6] == ["oprack-fixture-good", "1.2.3", "ok", "2", "ops"]
    assert rows["missing_module"][3] == "broken" and "PackImportError:" in rows["missing_module"]
    assert done.stdout.endswith("Run `oprack doctor` for the whole reasons.\n") and done.stderr == ""


def test_packs_json_says_everything(crowd):
    rows = {row["name"]: row for row in crowd.json("packs")}
    assert next(iter(rows)) == "core" and set(rows) == {"core", *ALL}
    assert rows["good"] == {
        "name": "good",
        "distribution": "oprack-fixture-good",
        "version": "1.2.3",
        "status": "ok",
        "error": "",
        "ops": ["fixture_thrice", "fixture_twice"],
        "hooks": ["oprack_ops"],
        "entry_point": "fixture_good.pack",
        "conflicts": ["fixture_thrice"],
        "layers": [],
        "layer_conflicts": [],
        "kernels": True,
    }
    assert rows["newer_schema"]["error"].startswith("PackVersionError")
    assert rows["missing_module"]["ops"] == ["fixture_needs_library"]


def test_packs_block(crowd):
    rows = {row["name"]: row for row in crowd.json("packs", "--block", "duplicate_op", "--block", "bad_manifest")}
    assert {name for name, row in rows.items() if row["status"] == "blocked"} == {"duplicate_op", "bad_manifest"}
    assert rows["good"]["conflicts"] == []
    assert "blocked by the caller" in crowd("packs", "--block", "duplicate_op").stdout


def test_block_of_core_and_of_an_unknown_name(alone):
    assert "'core' can't be blocked" in alone("packs", "--block", "core", code=3).stderr
    assert "'core' can't be blocked" in alone("packs", code=3, OPRACK_BLOCK="core").stderr
    assert (
        "PackWarning: blocked: no installed pack is named 'goood' (did you mean good?)"
        in alone("packs", "--block", "goood").stderr
    )


# ops, op --------------------------------------------------------------------------------------------------------------
def test_ops_by_part_and_by_pattern(alone):
    assert [row["op"] for row in alone.json("ops")] == ["feed", "fetch", "fixture_thrice", "fixture_twice"]
    assert alone.json("ops", "twi") == [
        {"op": "fixture_twice", "version": 0, "pack": "oprack-fixture-good", "places": ["cpu"], "error": ""}
    ]
    assert [row["op"] for row in alone.json("ops", "f*e")] == ["fixture_thrice", "fixture_twice"]
    text = alone("ops").stdout
    assert re.search(r"^fixture_twice +0 +oprack-fixture-good +cpu$", text, re.M)
    assert re.search(r"^feed +0 +oprack +runs itself$", text, re.M)
    assert "no op matches 'conv'" in alone("ops", "conv", code=1).stdout
    assert alone.json("ops", "conv", code=1) == []
    for name in ("good", "oprack-fixture-good"):
        assert [row["op"] for row in alone.json("ops", "--pack", name)] == ["fixture_thrice", "fixture_twice"]
    assert "no op of pack good matches 'feed'" in alone("ops", "feed", "--pack", "good", code=1).stdout
    refused = alone("ops", "--pack", "nn", code=3).stderr
    assert "--pack nn: no installed pack has this name; installed: core, good" in refused


def test_ops_shows_whose_is_used_in_a_conflict(crowd):
    row = crowd.json("ops", "thrice")[0]
    assert row["pack"] == "" and "OPRACK_PREFER=duplicate_op or OPRACK_PREFER=good" in row["error"]
    preferred = crowd("ops", "thrice", OPRACK_PREFER="good")
    assert "oprack-fixture-good" in preferred.stdout and "fixture_thrice" not in preferred.stderr
    assert "op fixture_thrice: refused until one of duplicate_op and good is preferred" in crowd("packs").stdout
    assert "op fixture_thrice: its own, not that of duplicate_op is used" in crowd("packs", "--prefer", "good").stdout


def test_op_describes_everything(alone):
    text = alone("op", "fixture_twice").stdout
    for part in (
        "fixture_twice  (oprack-fixture-good; op version 0)",
        "$$Out = 2 X + offset$$",
        "Inputs:\n  X\n      Tensor of any shape.",
        "offset: FLOAT = 0.0\n      Added at the end. Expected: a value of at least 0.",
        "Gradient: none: not differentiable",
        "kernels/twice.py:",
        "Provided by:\n  oprack-fixture-good\n      proto, checker, infer_shape",
    ):
        assert part in text
    facts = alone.json("op", "fixture_twice")
    (kernel,) = facts["kernels"]
    assert (kernel["place"], kernel["dtypes"], kernel["owner"]) == (
        "cpu",
        ["float32", "float64"],
        "oprack-fixture-good",
    )
    assert facts["attrs"] == [
        {
            "name": "offset",
            "type": "FLOAT",
            "default": 0.0,
            "checks": ["a value of at least 0"],
            "doc": "Added at the end.",
            "flags": [],
        }
    ]
    assert facts["gradient"] == {"kind": "none", "ops": []}


def test_op_that_runs_itself(alone):
    text = alone("op", "feed").stdout
    assert "Runs itself: oprack.runtime.feed_fetch:FeedOp" in text
    assert "col: INT  [required]" in text and "none on purpose" in text


def test_op_that_cannot_be_had(crowd):
    assert "did you mean fixture_twice" in crowd("op", "fixture_twise", code=1).stderr
    assert "no_such_library_anywhere" in crowd("op", "fixture_needs_library", code=1).stderr
    facts = crowd.json("op", "fixture_halve")
    assert facts["kernels"] == [] and "'Bias' is no input slot" in facts["kernel_errors"][0]


# doctor ---------------------------------------------------------------------------------------------------------------
def test_doctor_is_content(alone):
    done = alone("doctor", "--imports")
    assert "0 problem(s): everything is in order" in done.stdout and "place cpu: available" in done.stdout
    facts = alone.json("doctor")
    assert facts["problems"] == [] and facts["cache"] == "off"
    assert facts["versions"]["oprack"] == next(p["version"] for p in facts["packs"] if p["name"] == "core")


def test_doctor_says_that_no_pack_is_installed(tmp_path):
    bare = Command(tmp_path)
    advice = 'pip install "oprack[cpu]"'
    (problem,) = bare.json("doctor", code=1)["problems"]
    assert "no op pack is installed" in problem and advice in problem
    assert advice in bare("op", "relu", code=1).stderr


def test_doctor_gives_the_whole_reason_of_each(crowd):
    facts = crowd.json("doctor", code=1)
    problems = "\n".join(facts["problems"])
    assert len(facts["problems"]) == 5  # four broken packs, and a conflict
    assert "op 'fixture_thrice' is brought by duplicate_op (oprack-fixture-duplicate-op 1.2.3) and by good" in problems
    for name in ("missing_module", "raises_on_import", "bad_manifest", "newer_schema"):
        assert f"pack {name} (oprack-fixture-{name.replace('_', '-')} 1.2.3)" in problems
    (raises,) = [p for p in facts["packs"] if p["name"] == "raises_on_import"]
    assert any("fixture_raises_on_import/pack.py" in line for line in raises["traceback"])
    assert "RuntimeError: the driver is too old" in crowd("doctor", code=1).stdout


def test_doctor_imports_finds_the_bad_kernel(crowd):
    problems = crowd.json("doctor", "--imports", code=1)["problems"]
    assert len(problems) == 7 and any("'Bias' is no input slot" in p for p in problems)
    problems = crowd.json("doctor", "--imports", "--block", "bad_signature", code=1)["problems"]
    assert len(problems) == 5


# the command line -----------------------------------------------------------------------------------------------------
def test_usage_errors_return_2_and_help_lists_exit_codes(alone):
    assert alone(code=2).stderr.startswith("usage: oprack")
    unknown = alone("pack", code=2).stderr
    assert "there is no command 'pack' (did you mean packs?); `oprack --help` lists them" in unknown
    assert "unrecognized arguments" in alone("packs", "--jsn", code=2).stderr
    text = alone("--help").stdout
    assert "exit codes:" in text and all(name in text for name in cli.COMMANDS)
    assert alone("--version").stdout.startswith("oprack ")


def test_reader_that_leaves_is_no_error(alone):
    env = pack_site.environment(alone.paths)
    command = f"{sys.executable} -S -m oprack op fixture_twice | true; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", command], env=env, cwd=alone.cwd, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_every_command_of_the_table_has_its_module():
    import importlib

    for module, summary in cli.COMMANDS.values():
        loaded = importlib.import_module(f"oprack.cli.{module}")
        assert callable(loaded.configure) and callable(loaded.run) and summary


def test_listing_packs_and_ops_imports_no_array_library(alone):
    code = "import sys; from oprack.cli.main import main; main(sys.argv[1:]); print(*sys.modules)"
    for command in (["packs"], ["ops"]):
        env = pack_site.environment(alone.paths)
        modules = pack_site.run_python("-c", code, *command, env=env).stdout.split()
        assert not {"numpy", "rich", "oprack.runtime", "oprack.op", "fixture_good.ops"} & set(modules)
