"""`oprack manifest` and `oprack check` as functions: from source trees to ops.toml, and what a change breaks."""

from __future__ import annotations

import json
import re
import shutil
import sys
import tomllib
from pathlib import Path
from types import SimpleNamespace

import pack_site
import pytest
from oprack.cli.main import main
from oprack.errors import ManifestError, NotFoundError, PackImportError
from oprack.packs.checks import orphans
from oprack.packs.installed.manifest import OpEntry, parse
from oprack.packs.manager import PackManager
from oprack.testing.review.manifest import manifest_text
from oprack.testing.review.pack_source import find_source, generate
from oprack_testing import compatibility

ROOT = Path(__file__).parents[1]

OP = '''
from oprack.op import Attr, Input, OpDef, OpVersion, Output, REQUIRED
from oprack.types import AttrType

class Twice(OpDef, type="fixture_twice"):
    """Out = 2 X."""
    {slots}
    def infer_shape(ctx):
        ctx.set_dim("Out", ctx.dim("X"))
'''
SLOTS = """X = Input("x"); Y = Input("y", dispensable=True); Out = Output("out")
    scale = Attr(2.0, "s"); axes = Attr([0], "a"); mode = Attr(REQUIRED, "m", type=AttrType.INT)"""


@pytest.fixture
def project(tmp_path):
    """A copy of the good fixture pack, whose modules are forgotten after each question."""
    path = tmp_path / "oprack-good"
    shutil.copytree(pack_site.FIXTURES / "good", path)
    yield path
    forget()


def forget():
    for name in [n for n in sys.modules if n.startswith("fixture_good")]:
        del sys.modules[name]


def package(project):
    return project / "src" / "fixture_good"


def generated(project):
    forget()
    return generate(find_source(project))


def write_op(project, slots):
    (package(project) / "ops" / "twice.py").write_text(OP.format(slots=slots))
    forget()


def test_every_fixture_and_every_pack_of_the_workspace_is_found():
    for path in [*pack_site.FIXTURES.iterdir(), *(pack_site.ROOT / "op_packages").iterdir()]:
        if (path / "pyproject.toml").is_file():
            source = find_source(path)
            assert source.directory.is_dir() and source.package.startswith(("fixture_", "oprack_"))


def test_generated_manifest_is_the_committed_one(project):
    assert manifest_text(generated(project)) == (package(project) / "ops.toml").read_text()


def test_kernels_for_ops_of_others_and_operators(project):
    (package(project) / "kernels" / "relu.py").write_text(
        "from oprack.kernel import kernel\n"
        "@kernel('relu', place=('cpu', 'cuda'))\ndef fast_relu(X):\n    return X\n"
        "@kernel('fixture_twice', place='cuda')\ndef twice(X):\n    return X\n"
    )
    (package(project) / "operators.py").write_text(
        "from oprack.op import CreatorFacet\n"
        "class Base(CreatorFacet):\n    pass\n"
        "class Runner(Base):\n    op_type = 'fixture_thrice'\n"
    )
    manifest = generated(project)
    assert manifest.kernels == {"relu": dict.fromkeys(("cpu", "cuda"), ("fixture_good.kernels.relu",))}
    assert manifest.ops["fixture_twice"].kernels["cuda"] == ("fixture_good.kernels.relu",)
    assert manifest.ops["fixture_thrice"].operator == "fixture_good.operators:Runner"
    (package(project) / "operators.py").write_text(
        "from oprack.op import CreatorFacet\nclass Runner(CreatorFacet):\n    op_type = 'nothing'\n"
    )
    with pytest.raises(ManifestError, match=r"'nothing'.*no definition in ops"):
        generated(project)


FACETS = """
from oprack.op import IdentityFacet, InferShapeFacet, Input, OpFacets, OpMaker, OpVersion, Output

class Maker(OpMaker):
    X = Input("x"); Out = Output("out")

class Shape(InferShapeFacet):
    def __call__(self, ctx):
        ctx.set_dim("Out", ctx.dim("X"))

class Same(IdentityFacet):
    def __call__(self, ctx):
        return False

four = OpFacets("fixture_four", Shape, Maker, OpVersion("fixture_four").checkpoint("a"))
more = OpFacets("fixture_twice", Same)
others = OpFacets("relu", Same)
"""


def test_facets_are_named_and_imported_on_first_use(project, monkeypatch):
    (package(project) / "ops" / "four.py").write_text(FACETS)
    (package(project) / "kernels" / "four.py").write_text(
        "from oprack.kernel import kernel\n@kernel('fixture_four')\nclass Four:\n"
        "    def compute(self, X):\n        return X\n"
    )
    manifest = generated(project)
    assert manifest.ops["fixture_four"] == OpEntry(
        "fixture_good.ops.four:four", 1, {"cpu": ("fixture_good.kernels.four",)}
    )
    assert manifest.facets == {
        "fixture_twice": ("fixture_good.ops.four:more",), "relu": ("fixture_good.ops.four:others",)
    }  # fmt: skip
    assert parse(tomllib.loads(manifest_text(manifest)), "x") == manifest and manifest.schema_version == 3
    assert parse(manifest.to_dict(), "x") == manifest  # as the cache across processes holds it
    (package(project) / "ops.toml").write_text(manifest_text(manifest))
    assert compatibility.signatures(find_source(project))["fixture_four"]["inputs"] == {"X": []}
    forget()
    monkeypatch.syspath_prepend(project / "src")
    point = SimpleNamespace(
        name="good", value="fixture_good.pack", dist=SimpleNamespace(name="oprack-good", version="1")
    )
    manager = PackManager([point], environ={})
    assert manager.op_version("fixture_four") == 1 and orphans(manager) == [
        "good (oprack-good 1) brings facets of op 'relu', which no pack in use defines; `pip install oprack-nn` adds it"
    ]
    assert "fixture_good.ops.four" not in sys.modules  # until one of its ops is asked for
    assert manager.op_info("fixture_four").owners.keys() >= {"proto", "infer_shape", "versions"}
    assert manager.op_info("fixture_twice").owners["identity"] == "oprack-good"
    assert [s.name.rpartition(".")[0] for s in manager.kernel_map("fixture_four", "cpu")] == [
        "fixture_good.kernels.four.Four"
    ]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("facets = 3", "facets = 3; expected a table"),
        ("[facets]\nrelu = 'a:b'", "expected a list of strings such as"),
        ("[facets]\nrelu = ['a']", "expected a list of strings such as"),
        ("[facets]\n'a-b' = ['a:b']", "expected an op type"),
    ],
)
def test_malformed_facets_of_a_manifest_are_refused(text, reason):
    with pytest.raises(ManifestError, match=re.escape(reason)):
        parse(tomllib.loads(f"schema_version = 3\n{text}"), "x")


def test_a_manifest_that_names_other_facets_is_refused(project, monkeypatch):
    (package(project) / "ops" / "four.py").write_text(FACETS)
    manifest = manifest_text(generated(project)).replace("ops.four:four", "ops.four:more")
    (package(project) / "ops.toml").write_text(manifest.replace('["fixture_good.ops.four:more"]', "[]"))
    forget()
    monkeypatch.syspath_prepend(project / "src")
    dist = SimpleNamespace(name="oprack-good", version="1")
    point = SimpleNamespace(name="good", value="fixture_good.pack", dist=dist)
    with pytest.raises(ManifestError, match=r"'fixture_good.ops.four:more' is OpFacets\('fixture_twice', Same\)"):
        PackManager([point], environ={}).op_info("fixture_four")


def test_rules_of_an_operator_that_nobody_would_read_are_refused(project):
    (package(project) / "operators.py").write_text(
        "from oprack.runtime import OperatorBase\nclass Runner(OperatorBase):\n    op_type = 'fixture_thrice'\n"
        "    def infer_shape(self, ctx): ...\n"
    )
    with pytest.raises(ManifestError, match="its infer_shape would not be read; move it to the definition"):
        generated(project)


def test_version_is_the_number_of_checkpoints(project):
    write_op(project, SLOTS + '\n    versions = OpVersion("fixture_twice").checkpoint("a").checkpoint("b")')
    assert generated(project).ops["fixture_twice"].version == 2


def test_layers_are_the_public_functions_the_generated_ones_or_what_all_says(project):
    layers = package(project) / "layers"
    layers.mkdir()
    (layers / "__init__.py").touch()
    (layers / "_shared.py").write_text("def helper(): pass\n")
    (layers / "plain.py").write_text(
        "from json import dumps\nfrom oprack.layers import generated_layers\n"
        "from fixture_good.layers._shared import helper\n"
        "__getattr__ = generated_layers('fixture_twice', doubled='fixture_twice')\n"
        "def own(x): pass\ndef _hidden(): pass\nNUMBER = 3\n"
    )
    (layers / "chosen.py").write_text("__all__ = ['kept']\ndef kept(): pass\ndef not_kept(): pass\n")
    (package(project) / "modules.py").write_text("class Gate: pass\nGateLayer = Gate\n")
    assert generated(project).layers == {
        "layers": {
            "fixture_good.layers.chosen": ("kept",),
            "fixture_good.layers.plain": ("doubled", "fixture_twice", "own"),
        },
        "nn": {"fixture_good.modules": ("Gate", "GateLayer")},
    }


def test_two_definitions_of_one_op_are_refused(project):
    shutil.copy(package(project) / "ops" / "twice.py", package(project) / "ops" / "again.py")
    with pytest.raises(ManifestError, match=r"'fixture_twice' is defined twice: fixture_good.ops.again:Twice and"):
        generated(project)


def test_definition_that_no_module_holds_is_refused(project):
    (package(project) / "ops" / "hidden.py").write_text(
        "from oprack.op import OpDef\n"
        "kept = [type(OpDef)('Hidden', (OpDef,), {'__module__': __name__}, type='fixture_hidden')]\n"
    )
    with pytest.raises(ManifestError, match=r"'fixture_hidden': no module holds its definition.*globals\(\)"):
        generated(project)


def test_reexported_definition_is_named_where_it_was_written(project):
    (package(project) / "ops" / "__init__.py").write_text("from fixture_good.ops.twice import Twice\n")
    assert generated(project).ops["fixture_twice"].define == "fixture_good.ops.twice:Twice"


def test_source_tree_goes_before_what_is_imported_already(project, tmp_path):
    other = tmp_path / "other" / "oprack-good"
    shutil.copytree(project, other)
    generated(project)
    with pytest.raises(ManifestError, match=r"already imported from .*; ask in a process of its own"):
        generate(find_source(other))
    assert generated(other) == generated(project)


def test_module_that_fails_is_named(project):
    (package(project) / "kernels" / "broken.py").write_text("1 / 0\n")
    with pytest.raises(PackImportError, match=r"kernels.broken' failed at \S+broken.py:1: ZeroDivisionError"):
        generated(project)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (None, "has no pyproject.toml"),
        ("[project", "is no TOML"),
        ("[project]\nname = 'x'", "declares 0 packs"),
        ('[project.entry-points."oprack.packs"]\na = "b.pack"\nc = "d.pack"', "declares 2 packs"),
        ('[project.entry-points."oprack.packs"]\na = "nowhere.pack"', "'nowhere.pack' is neither below"),
    ],
)
def test_directory_that_is_no_pack(tmp_path, text, expected):
    if text is not None:
        (tmp_path / "pyproject.toml").write_text(text)
    with pytest.raises(NotFoundError, match=expected):
        find_source(tmp_path)


def test_command_writes_and_checks(project, capsys):
    target = package(project) / "ops.toml"
    expected = target.read_text()
    assert main(["manifest", str(project), "--check"]) == 0
    assert "up to date (2 ops, 2 with kernels" in capsys.readouterr().out
    target.write_text(expected.replace("fixture_thrice]", "fixture_old]"))
    forget()
    assert main(["manifest", "--check", str(project)]) == 1
    out = capsys.readouterr().out
    assert "stale; run `oprack manifest" in out and "-[ops.fixture_old]" in out and "+[ops.fixture_thrice]" in out
    target.unlink()
    forget()
    assert main(["manifest", str(project)]) == 0
    assert target.read_text() == expected
    assert not list(package(project).glob("*.tmp"))
    assert main(["manifest", str(project / "src")]) == 3
    assert "NotFoundError" in capsys.readouterr().err


# Compatibility --------------------------------------------------------------------------------------------------------
VERSION = '\n    versions = OpVersion("fixture_twice").checkpoint("change")'
# (what replaces what in SLOTS, whether a checkpoint is added, the expected change, whether it breaks)
CHANGES = [
    ('Y = Input("y", dispensable=True)', "pass", True, "input Y is gone", True),
    ('Out = Output("out")', 'Other = Output("out")', True, "output Out is gone", True),
    ('X = Input("x")', 'X = Input("x", duplicable=True)', True, "input X was one variable", True),
    ('"y", dispensable=True', '"y"', True, "input Y is no longer dispensable", True),
    ('X = Input("x")', 'X = Input("x", dispensable=True)', True, "input X is now dispensable", False),
    ("Out =", 'Z = Input("z"); Out =', True, "new input Z is not dispensable", True),
    ("Out =", 'Z = Input("z", dispensable=True); Out =', True, "new input Z", False),
    ("Out =", 'Mask = Output("m"); Out =', True, "new output Mask is not dispensable", True),
    ('X = Input("x"); Y =', 'Y = Input("y", dispensable=True); X = Input("x"); W =', True, "changed their order", True),
    ('scale = Attr(2.0, "s")', "pass", True, "attribute scale is gone", True),
    ("Attr(2.0", "Attr(2", True, "attribute scale was FLOAT and is INT", True),
    ("Attr(2.0", "Attr(REQUIRED", True, "attribute scale lost its default", True),
    ("Attr(2.0", "Attr(3.0", True, "attribute scale: default was 2.0 and is 3.0", False),
    ("Attr([0]", "Attr([0, 1]", True, "attribute axes: default was [0] and is [0, 1]", False),
    ('mode = Attr(REQUIRED, "m"', 'mode = Attr(0, "m"', True, "attribute mode: default was 'none' and is 0", False),
    ("scale =", 'bias = Attr(0.0, "b"); scale =', True, "new attribute bias", False),
    ("scale =", 'bias = Attr(REQUIRED, "b", type=AttrType.FLOAT); scale =', True, "bias has no default", True),
    ("scale =", 'bias = Attr(0.0, "b"); scale =', False, "add a checkpoint to its OpVersion", True),
    ("Attr(2.0", "Attr(3.0", False, "its version is still 0", True),
]


@pytest.mark.parametrize(("old", "new", "checkpoint", "expected", "breaking"), CHANGES)
def test_changes_to_a_released_op(project, old, new, checkpoint, expected, breaking):
    write_op(project, SLOTS)
    then = compatibility.signatures(find_source(project))
    assert old in SLOTS
    changed = SLOTS.replace(old, new)
    if "Attr(REQUIRED" in new and "type=" not in new:
        changed = changed.replace('Attr(REQUIRED, "s")', 'Attr(REQUIRED, "s", type=AttrType.FLOAT)')
    write_op(project, changed + (VERSION if checkpoint else ""))
    changes = compatibility.compare(then, compatibility.signatures(find_source(project)))
    assert {c.op_type for c in changes} == {"fixture_twice"}
    assert [c.breaking for c in changes if expected in c.text] == [breaking]
    assert any(c.breaking for c in changes) == breaking


def test_ops_that_come_and_go(project):
    now = compatibility.signatures(find_source(project))
    one = {"fixture_twice": now["fixture_twice"]}
    assert [(c.text, c.breaking) for c in compatibility.compare(one, now)] == [("new op", False)]
    assert [(c.text, c.breaking) for c in compatibility.compare(now, one)] == [("the op is gone", True)]
    assert compatibility.compare(now, now) == []


def test_version_that_goes_back(project):
    now = compatibility.signatures(find_source(project))
    then = json.loads(json.dumps(now))
    then["fixture_twice"]["version"] = 1
    (change,) = compatibility.compare(then, now)
    assert change.breaking and "went from 1 back to 0" in change.text


def test_check_command(project, capsys):
    write_op(project, SLOTS)
    assert main(["check", str(project), "--only", "signatures"]) == 1
    assert "there is no snapshot" in capsys.readouterr().out
    assert main(["check", str(project), "--update"]) == 0
    snapshot = project / "ops.lock.json"
    assert set(compatibility.read(snapshot)) == {"fixture_thrice", "fixture_twice"}
    assert main(["check", str(project), "--only", "signatures"]) == 0
    assert "0 breaking, 0 new" in capsys.readouterr().out
    before = snapshot.read_bytes()
    write_op(project, SLOTS.replace("Attr(2.0", "Attr(2"))
    assert main(["check", str(project), "--update"]) == 1
    out = capsys.readouterr().out
    assert "BREAKING  fixture_twice: attribute scale was FLOAT and is INT" in out and "2 breaking" in out
    assert snapshot.read_bytes() == before
    assert main(["check", str(project), "--only", "signatures", "--json"]) == 1
    assert [c["op"] for c in json.loads(capsys.readouterr().out)["changes"]] == ["fixture_twice"] * 2
    assert main(["check", str(project), "--update", "--allow-breaking"]) == 0
    assert main(["check", str(project), "--only", "signatures"]) == 0


@pytest.mark.parametrize("text", ["", "{}", '{"format": 9, "ops": {}}', '{"format": 1, "ops": {"a": {"inputs": 3}}}'])
def test_damaged_snapshot(project, capsys, text):
    (project / "ops.lock.json").write_text(text)
    assert main(["check", str(project), "--only", "signatures"]) == 4
    assert "ops.lock.json: is no snapshot of ops" in capsys.readouterr().err


def test_a_snapshot_of_the_first_format_is_read(project):
    write_op(project, SLOTS)
    now = compatibility.signatures(find_source(project))
    (project / "ops.lock.json").write_text(json.dumps({"format": 1, "ops": now}))
    assert compatibility.read(project / "ops.lock.json") == now
    assert main(["check", str(project), "--only", "signatures"]) == 0


def test_several_packs_are_checked_at_once(project, capsys):
    write_op(project, SLOTS)
    own = [ROOT / "op_packages/metric", ROOT / "op_packages/selected_rows"]
    assert main(["check", "--only", "signatures", *map(str, own)]) == 0
    assert capsys.readouterr().out.count("0 breaking, 0 new") == 2
    assert main(["check", "--only", "signatures", str(own[0]), str(project), "--json"]) == 1
    assert [r["ok"] for r in json.loads(capsys.readouterr().out)] == [True, False]


@pytest.mark.parametrize("path", sorted(p.parents[2] for p in ROOT.glob("*/*/src/*/ops.toml")), ids=lambda p: p.name)
def test_each_pack_of_ours_keeps_its_promises(path, tmp_path):
    source = find_source(path)
    now = compatibility.signatures(source)
    assert not [c for c in compatibility.compare(compatibility.read(path / "ops.lock.json"), now) if c.breaking]
    compatibility.write(tmp_path / "ops.lock.json", now)
    assert compatibility.read(tmp_path / "ops.lock.json") == now
    assert len((tmp_path / "ops.lock.json").read_text().splitlines()) == len(now) + 5  # a line for each op


@pytest.mark.parametrize(("before", "after", "breaking"), [(0, 2, True), (3, 2, False), (2, 2, None)])
def test_a_higher_minimum_of_a_list_breaks(project, tmp_path, before, after, breaking):
    def snapshot(minimum):
        write_op(project, SLOTS.replace('Input("x")', f'Input("x", duplicable=True, minimum={minimum})'))
        return compatibility.signatures(find_source(project))

    then, now, file = snapshot(before), snapshot(after), tmp_path / "lock.json"
    compatibility.write(file, then)
    assert compatibility.read(file) == then
    text = f"input X had at least {before} variables and has at least {after}"
    found = [c.breaking for c in compatibility.compare(compatibility.read(file), now) if c.text == text]
    assert found == ([] if breaking is None else [breaking])
