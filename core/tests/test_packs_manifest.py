"""ops.toml: what is accepted, what is refused and in which words, and that writing is stable."""

from __future__ import annotations

import re
import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st
from oprack.errors import ManifestError, PackVersionError
from oprack.packs.installed.manifest import Manifest, OpEntry, parse, parse_later, read

GOOD = """\
schema_version = 1
[ops.scale]
define = "oprack_math.ops.scale:Scale"
version = 2
kernels.cpu = ["oprack_math.kernels.scale"]
kernels.cuda = ["oprack_math.kernels.scale", "oprack_math.kernels.fast"]
[ops.while]
define = "oprack_control_flow.ops.loop:While"
operator = "oprack_control_flow.operators.while_:WhileOp"
[kernels.relu]
cpu = ["my_pack.kernels.fast_relu"]
"""


def test_reads_ops_and_kernels_for_ops_of_others(tmp_path):
    (tmp_path / "ops.toml").write_text(GOOD)
    manifest = read(tmp_path / "ops.toml")
    assert manifest.ops["scale"].version == 2
    assert manifest.modules("scale", "cuda") == ("oprack_math.kernels.scale", "oprack_math.kernels.fast")
    assert manifest.modules("relu", "cpu") == ("my_pack.kernels.fast_relu",)
    assert manifest.modules("relu", "cuda") == manifest.modules("unknown", "cpu") == ()
    assert (manifest.places("scale"), manifest.places("while")) == ({"cpu", "cuda"}, set())
    assert manifest.ops["while"].operator.endswith(":WhileOp")


# (changed lines, what the error says: key, value, expectation)
BAD = [
    ("", "schema_version = None; expected an int from 1"),
    ("schema_version = true", "schema_version = True; expected an int"),
    ('schema_version = "1"', "schema_version = '1'; expected an int"),
    ("schema_version = 1\nopps = {}", "opps = {}; expected one of the keys schema_version, ops, kernels"),
    ("schema_version = 1\nops = 3", "ops = 3; expected a table with one entry per op type"),
    ("schema_version = 1\n[ops]\nscale = 3", "ops.scale = 3; expected a table"),
    ("schema_version = 1\n[ops.scale]", "ops.scale.define = None; expected a string such as"),
    ("schema_version = 1\n[ops.scale]\ndefine = 'a.b'", "ops.scale.define = 'a.b'; expected a string such as"),
    ("schema_version = 1\n[ops.scale]\ndefine = 'a.b:C\\n'", "ops.scale.define"),
    ("schema_version = 1\n[ops.'a b']\ndefine = 'a:B'", "ops.'a b' = {'define': 'a:B'}; expected an op type"),
    ("schema_version = 1\n[ops.s]\ndefine = 'a:B'\nversion = -1", "ops.s.version = -1; expected the number of"),
    ("schema_version = 1\n[ops.s]\ndefine = 'a:B'\nversion = 1.5", "ops.s.version = 1.5"),
    ("schema_version = 1\n[ops.s]\ndefine = 'a:B'\nkernel = 1", "ops.s.kernel = 1; expected one of the keys define"),
    ("schema_version = 1\n[ops.s]\ndefine = 'a:B'\noperator = 'x'", "ops.s.operator = 'x'; expected a string"),
    ("schema_version = 1\n[ops.s]\ndefine = 'a:B'\nkernels = 1", "ops.s.kernels = 1; expected a table place"),
    ("schema_version = 1\n[ops.s]\ndefine = 'a:B'\nkernels.cpu = 'm'", "ops.s.kernels.cpu = 'm'; expected a list"),
    ("schema_version = 1\n[kernels.s]\ncpu = ['m', 'a/b']", "kernels.s.cpu = ['m', 'a/b']; expected a list of modules"),
    ("schema_version = 2\nlayers = 3", "layers = 3; expected a table namespace -> module -> list of names"),
    ("schema_version = 2\n[layers]\nnn = 3", "layers.nn = 3; expected a table module -> list of names"),
    ("schema_version = 2\n[layers.nn]\n'a-b' = ['C']", "layers.nn.'a-b' = ['C']; expected a module such as"),
    ("schema_version = 2\n[layers.nn]\na = 'C'", "layers.nn.'a' = 'C'; expected a list of names such as"),
    ("schema_version = 2\n[layers.nn]\na = ['C:D']", "layers.nn.'a' = ['C:D']; expected a list of names"),
    ("schema_version = ", "is no TOML"),
]


@pytest.mark.parametrize(("text", "expected"), BAD)
def test_malformed_manifest_names_file_key_value_and_expectation(tmp_path, text, expected):
    path = tmp_path / "ops.toml"
    path.write_text(text)
    with pytest.raises(ManifestError) as e:
        read(path)
    message = str(e.value)
    assert message.startswith(f"{path}: ") and expected in message and "oprack manifest" in message


def test_missing_and_binary_files_are_manifest_errors(tmp_path):
    with pytest.raises(ManifestError, match="can't be read"):
        read(tmp_path / "none.toml")
    (tmp_path / "ops.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ManifestError, match=r"can't be read.*UnicodeDecodeError"):
        read(tmp_path / "ops.toml")


def test_only_a_manifest_with_layers_needs_a_core_that_knows_them():
    assert parse({"schema_version": 1, "ops": {}}, "x").schema_version == 1
    layers = {"nn": {"my_pack.modules": ["Gate"]}}
    assert parse({"schema_version": 2, "layers": layers}, "x").to_dict()["schema_version"] == 2


def test_newer_schema_says_to_upgrade():
    """x: schema_version = 4, but this oprack reads up to 3: the pack was written for a newer core; upgrade oprack"""
    with pytest.raises(PackVersionError, match=re.escape(test_newer_schema_says_to_upgrade.__doc__)):
        parse({"schema_version": 4, "whatever": 1}, "x")


@pytest.mark.parametrize("data", [3, {}, {"schema_version": 1, "ops": []}, {"schema_version": 1, "kernels": 2}])
def test_tables_for_later_are_checked_as_a_whole(data):
    with pytest.raises(ManifestError, match="expected"):
        parse_later(data, "x")


def test_entries_for_later_are_checked_when_they_are_asked_for():
    table = {"ops": {"a": {"define": "m:A"}, "b": 3}, "kernels": {"c": {"cpu": "m"}}, "layers": {"layers": {"m": 1}}}
    manifest = parse_later({"schema_version": 2, **table}, "x")
    assert list(manifest.ops) == ["a", "b"] and manifest.ops["a"] is manifest.ops["a"] == OpEntry("m:A")
    for ask, where in (
        (lambda: manifest.ops["b"], "ops.b"),
        (lambda: manifest.modules("c", "cpu"), "kernels.c.cpu"),
        (lambda: manifest.layers["layers"], "layers.layers"),
    ):
        with pytest.raises(ManifestError, match=f"x: {where}"):
            ask()


NAMES = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,8}", fullmatch=True)
MODULES = st.lists(NAMES, min_size=1, max_size=3).map(".".join)
PLACES = st.dictionaries(
    st.sampled_from(["cpu", "cuda", "npu"]), st.sets(MODULES, min_size=1).map(lambda m: tuple(sorted(m))), max_size=3
)
NAME_LISTS = st.sets(NAMES, min_size=1, max_size=3).map(lambda names: tuple(sorted(names)))
OBJECTS = st.tuples(MODULES, NAMES).map(":".join)
MANIFESTS = st.builds(
    Manifest,
    st.dictionaries(NAMES, st.builds(OpEntry, OBJECTS, st.integers(0, 99), PLACES, st.just("") | OBJECTS), max_size=4),
    st.dictionaries(NAMES, PLACES, max_size=3),
    st.dictionaries(NAMES, st.dictionaries(MODULES, NAME_LISTS, min_size=1, max_size=3), max_size=3),
)


@given(MANIFESTS)
def test_what_is_written_is_read_back_and_stable(manifest):
    from oprack.testing.review.manifest import manifest_text

    text = manifest_text(manifest)
    again = parse(tomllib.loads(text), "x")
    assert again == manifest == parse(manifest.to_dict(), "x") == parse_later(manifest.to_dict(), "x")
    assert manifest_text(again) == text
    backwards = Manifest(*(dict(reversed(t.items())) for t in (manifest.ops, manifest.kernels, manifest.layers)))
    assert manifest_text(backwards) == text
