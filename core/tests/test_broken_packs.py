"""Six broken packs beside a good one: the good one works, each broken one is reported with its own class and words."""

from __future__ import annotations

import json
import re
import sys
import warnings

import numpy as np
import pack_site
import pytest
from oprack.errors import (
    DefinitionError,
    DuplicateOpError,
    ManifestError,
    MissingPackError,
    PackImportError,
    PackVersionError,
    UnknownOpError,
)
from oprack.kernel import KernelQuery, OpKernelType
from oprack.packs import BrokenPackWarning, PackManager

NAMES = ("good", "missing_module", "raises_on_import", "bad_manifest", "duplicate_op", "newer_schema", "bad_signature")
# pack -> (class of its error, part of the text, part of the cause)
BROKEN = {
    "missing_module": (PackImportError, "entry point 'fixture_missing_module.pack'", "no_such_library_anywhere"),
    "raises_on_import": (PackImportError, "RuntimeError", "the driver is too old"),
    "bad_manifest": (ManifestError, "ops.toml: ops.fixture_bad.define", "expected a string such as"),
    "newer_schema": (PackVersionError, "schema_version = 99", "upgrade oprack"),
}


@pytest.fixture
def site(tmp_path, monkeypatch):
    pack_site.install(tmp_path, *NAMES)
    monkeypatch.syspath_prepend(tmp_path)
    yield tmp_path
    for name in [n for n in sys.modules if n.startswith("fixture_")]:
        del sys.modules[name]


@pytest.fixture
def manager(site):
    manager = PackManager(pack_site.entry_points(site), environ={})
    with pytest.warns(BrokenPackWarning):
        manager.packs()
    return manager


def test_every_broken_pack_warns_once_with_distribution_version_reason_and_command(site):
    manager = PackManager(pack_site.entry_points(site), environ={})
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        manager.packs()
        manager.op_types()
        manager.packs()
    texts = [str(w.message) for w in caught if w.category is BrokenPackWarning]
    assert len(texts) == len(caught) == len(BROKEN)
    for name, (cls, part, cause) in BROKEN.items():
        (text,) = [t for t in texts if t.startswith(f"pack {name} ")]
        assert f"(oprack-fixture-{name.replace('_', '-')} 1.2.3)" in text
        assert cls.__name__ in text and part in text and cause in text and "oprack doctor" in text
    assert {w.filename for w in caught} == {__file__}


@pytest.mark.parametrize("name", BROKEN)
def test_broken_pack_is_listed_with_class_and_text(manager, name):
    cls, part, cause = BROKEN[name]
    (info,) = [p for p in manager.packs() if p.name == name]
    assert (info.status, info.version) == ("broken", "1.2.3")
    assert type(info.exception) is cls
    assert info.error.startswith(cls.__name__) and part in info.error and cause in info.error


def test_good_pack_works_beside_them(manager):
    (info,) = [p for p in manager.packs() if p.name == "good"]
    assert (info.status, info.error, info.hooks) == ("ok", "", ("oprack_ops",))
    assert manager.op_info("fixture_twice").pack == "oprack-fixture-good"
    query = KernelQuery("fixture_twice", {}, {"X": "float32"}, {"X": "LoDTensor"})
    chosen = manager.kernel_map("fixture_twice", "cpu").choose(OpKernelType("cpu", "float32"), query)
    found = chosen.spec.function(np.float32([1, 2]), offset=0.5)
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found, [2.5, 4.5])


def test_op_of_a_broken_pack_says_so_again(manager):
    with pytest.raises(UnknownOpError, match=r"missing_module.*broken.*no_such_library_anywhere") as e:
        manager.op_info("fixture_needs_library")
    assert isinstance(e.value.__cause__, PackImportError)
    assert not manager.has_op("fixture_needs_library")


def test_duplicate_names_both_distributions_and_how_to_choose_one(manager):
    expected = "oprack-fixture-duplicate-op.*oprack-fixture-good.*OPRACK_PREFER=.*OPRACK_BLOCK="
    with pytest.raises(DuplicateOpError, match=expected):
        manager.require_ops(["fixture_thrice"])
    conflicts = {p.name: p.conflicts for p in manager.packs() if p.conflicts}
    assert conflicts == {"good": ("fixture_thrice",), "duplicate_op": ("fixture_thrice",)}
    manager.block("oprack-fixture-duplicate-op")
    assert manager.op_info("fixture_thrice").pack == "oprack-fixture-good"
    assert not any(p.conflicts for p in manager.packs())


def test_bad_kernel_signature_is_reported_and_raised_when_no_kernel_is_left(manager):
    with (
        pytest.warns(BrokenPackWarning, match="bad_signature .*op fixture_halve at cpu.*'Bias' is no input slot"),
        pytest.raises(DefinitionError, match="'Bias' is no input slot; expected one of X"),
    ):
        manager.kernel_map("fixture_halve", "cpu")


def test_another_kernel_takes_the_place_of_a_bad_one(manager):
    from oprack.kernel import kernel

    def halve(X, *, offset):
        return X / 2 + offset

    with pytest.warns(BrokenPackWarning, match="'Bias' is no input slot"):
        manager.register_kernel(kernel("fixture_halve")(halve))
    assert [spec.function for spec in manager.kernel_map("fixture_halve", "cpu")] == [halve]


def test_require_ops_names_all_missing_types_and_the_broken_pack(manager):
    with pytest.raises(MissingPackError) as e:
        manager.require_ops(["fixture_needs_library", "fixture_twise", "feed"])
    text = str(e.value)
    assert "2 op type(s)" in text and "feed" not in text
    assert re.search("fixture_needs_library: pack missing_module .*is broken", text)
    assert "fixture_twise: no installed pack (did you mean fixture_twice" in text


def test_warnings_as_errors_leave_the_good_packs_usable(site):
    manager = PackManager(pack_site.entry_points(site), environ={})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(BrokenPackWarning):
            manager.packs()
        assert manager.has_op("fixture_twice") and len(manager.packs()) == len(NAMES) + 1


def test_a_pack_that_exits_the_interpreter_is_only_broken(tmp_path, monkeypatch):
    (tmp_path / "fixture_exits.py").write_text("raise SystemExit(3)\n")
    pack_site.write_metadata(tmp_path, "oprack-exits", "1", {"exits": "fixture_exits"})
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.warns(BrokenPackWarning, match="SystemExit"):
        packs = PackManager(pack_site.entry_points(tmp_path), environ={}).packs()
    assert [p.status for p in packs] == ["ok", "broken"]


@pytest.mark.parametrize(
    ("content", "status", "text"),
    [
        (b"[oprack.packs]\na line without sense\n", "broken", "entry points can't be read (TypeError"),
        (b"\xff\xfe[oprack.packs]\nx = a.b\n", "broken", "entry points can't be read (UnicodeDecodeError"),
        (b"[oprack.packs]\nx =\n", "broken", "entry point '' can't be imported"),
        (b"[oprack.packs]\nx = no sense:at all\n", "broken", "entry point 'no sense:at all' can't be imported"),
        (b"[oprack.packs]\nx = fixture_good:missing\n", "broken", "AttributeError"),
        (b"[oprack.packs]\nx = fixture_good.pack [extra]\n", "ok", ""),
    ],
)
def test_damaged_metadata_of_one_distribution(tmp_path, content, status, text):
    site = pack_site.install(tmp_path / "site", "good")
    next(site.glob("*.dist-info")).joinpath("entry_points.txt").write_bytes(content)
    pack_site.synthetic(site, 1)
    env = pack_site.environment([site, pack_site.libraries(tmp_path / "libraries")])
    done = pack_site.run_python("-m", "oprack", "packs", "--json", env=env)
    packs = {p["distribution"]: p for p in json.loads(done.stdout)}
    assert packs["oprack-synthetic-0"]["status"] == "ok"
    good = packs["oprack-fixture-good"]
    assert (good["status"], good["version"]) == (status, "1.2.3") and text in good["error"]


LATE = """
from oprack import hookimpl

class Library:
    def status(self):
        raise RuntimeError("the driver went away")

LIBRARY = Library()

@hookimpl
def oprack_libraries(register):
    register.library("late", "fixture_late:LIBRARY")
    register.library("lost", "fixture_late:NOTHING")

@hookimpl
def oprack_passes(register):
    register.pass_("lost", "fixture_late:nothing", stage="fuse")

@hookimpl
def oprack_layers(register):
    register.layer("lost", "fixture_late:nothing")

@hookimpl
def oprack_commands(register):
    register.command("lost", "fixture_late:nothing", "does nothing")

@hookimpl
def oprack_observers(register):
    register.observer("fixture_late:nothing")
"""


def test_what_breaks_only_when_it_is_used_stops_nobody_else(tmp_path):
    """A library that fails when it is asked, and strings of each hook that name nothing."""
    site = pack_site.install(tmp_path / "site", "good")
    (site / "fixture_late.py").write_text(LATE)
    pack_site.write_metadata(site, "oprack-late", "1.0", {"late": "fixture_late"})
    env = pack_site.environment([site, pack_site.libraries(tmp_path / "libraries")])
    done = pack_site.run_python("-m", "oprack", "doctor", "--imports", "--json", env=env)
    facts = json.loads(done.stdout)
    assert facts["libraries"]["late"] == "broken: RuntimeError: the driver went away"
    assert facts["libraries"]["lost"].startswith("broken: PackImportError")
    problems = "\n".join(facts["problems"])
    assert "library late: broken: RuntimeError: the driver went away" in problems
    assert "layers.lost" in problems
    assert any(note.startswith("the passes of packs, 1 in all, are not looked at: ") for note in facts["notes"])
    run = (
        "import numpy as np; from oprack import CPUPlace, LoDTensor, Scope, create_op; scope = Scope(); "
        "scope.var('x').value = LoDTensor(np.array([1.0, 2.0], 'float32')); scope.var('y'); "
        "create_op('fixture_twice', {'X': ['x']}, {'Out': ['y']}, {'offset': 0.5}).run(scope, CPUPlace()); "
        "print(scope.get_var('y').value.array.tolist())"
    )
    done = pack_site.run_python("-c", run, env=env)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "[2.5, 4.5]"
