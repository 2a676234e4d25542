"""PackManager: choosing and blocking packs, and finding the definition and the kernels of an op."""

from __future__ import annotations

import sys

import pytest
from oprack.errors import (
    DefinitionError,
    InvalidArgumentError,
    ManifestError,
    NotFoundError,
    PackImportError,
    UnknownOpError,
)
from oprack.op import CreatorFacet
from oprack.packs import PackManager, PackWarning
from plain_packs import Plain, PlainMaker, manager_of


# Which packs ----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({}, "a b c"),
        ({"OPRACK_PACKS": ""}, ""),
        ({"OPRACK_PACKS": "a, oprack-c"}, "a c"),
        ({"OPRACK_BLOCK": "b"}, "a c"),
        ({"OPRACK_BLOCK": ""}, "a b c"),
        ({"OPRACK_PACKS": "a,b", "OPRACK_BLOCK": "oprack-b"}, "a"),
    ],
)
def test_environment_chooses_packs(pack, environ, expected):
    loaded = []
    packs = [pack(name, oprack_ops=lambda register: loaded.append(register.pack)) for name in "abc"]
    infos = manager_of(*packs, **environ).packs()
    assert " ".join(loaded) == " ".join(p.name for p in infos[1:] if p.status == "ok") == expected
    assert infos[0].name == "core" and infos[0].status == "ok"
    assert all(p.error for p in infos if p.status == "blocked")


@pytest.mark.parametrize("variable", ["OPRACK_PACKS", "OPRACK_BLOCK"])
def test_unknown_name_in_the_environment_is_reported(pack, variable):
    manager = manager_of(pack("alpha", oprack_ops=lambda register: None), **{variable: "alpa"})
    with pytest.warns(PackWarning, match=rf"{variable}: no installed pack is named 'alpa' \(did you mean alpha\?\)"):
        manager.packs()


def test_blocking_later_takes_ops_away_and_says_so(pack):
    manager = manager_of(pack("a", oprack_ops=lambda register: register.op(Plain)))
    manager.op_info("plain")
    revision = manager.revision
    manager.block("a")
    assert manager.revision > revision and not manager.has_op("plain")
    with pytest.raises(UnknownOpError, match=r"pack a .*brings it but is blocked: blocked by PackManager.block"):
        manager.op_info("plain")
    with pytest.raises(NotFoundError, match="no installed pack is named 'b'"):
        manager.block("b")


def test_op_of_a_blocked_pack_is_known_from_its_manifest(good):
    manager = PackManager(good, environ={}, blocked=["good"])
    assert "fixture_good.pack" not in sys.modules
    with pytest.raises(UnknownOpError, match=r"pack good .*is blocked: blocked by the caller"):
        manager.op_info("fixture_twice")
    assert "fixture_good.pack" not in sys.modules


@pytest.mark.parametrize("name", ["core", "oprack"])
def test_core_cannot_be_blocked(name):
    for attempt in (
        lambda: PackManager([], environ={}).block(name),
        lambda: PackManager([], environ={}, blocked=[name]).packs(),
        lambda: PackManager([], environ={"OPRACK_BLOCK": name}).packs(),
    ):
        with pytest.raises(InvalidArgumentError, match="core's own pack 'core' can't be blocked"):
            attempt()


# Resolution -----------------------------------------------------------------------------------------------------------
def test_unknown_op_names_close_matches(good):
    with pytest.raises(UnknownOpError, match=r"'fixture_twise' is unknown.*did you mean fixture_twice"):
        manager_of(*good).op_info("fixture_twise")


def test_definition_string_that_names_nothing(good, tmp_path):
    path = tmp_path / "fixture_good" / "ops.toml"
    text = path.read_text()
    path.write_text(text.replace("twice:Twice", "twice:Twize"))
    with pytest.raises(PackImportError, match=r"op fixture_twice of pack good .*'fixture_good.ops.twice:Twize' names"):
        manager_of(*good).op_info("fixture_twice")
    path.write_text(text.replace("ops.twice:Twice", "ops.thrice:Thrice"))
    with pytest.raises(ManifestError, match=r"expected a definition class with type='fixture_twice'.*oprack manifest"):
        manager_of(*good).op_info("fixture_twice")


def test_kernel_module_that_the_manifest_names_in_vain(good, tmp_path):
    path = tmp_path / "fixture_good" / "ops.toml"
    path.write_text(path.read_text().replace("kernels.twice", "kernels.thrice"))
    with (
        pytest.warns(PackWarning, match="op fixture_twice at cpu"),
        pytest.raises(ManifestError, match="has no @kernel of this op and place"),
    ):
        manager_of(*good).kernel_map("fixture_twice", "cpu")


def test_op_without_infer_shape_is_refused(pack):
    manager = manager_of(pack("a", oprack_ops=lambda register: register.operator("plain", PlainMaker)))
    with pytest.raises(DefinitionError, match="op plain of oprack-a has no infer_shape"):
        manager.op_info("plain")


def test_operator_class_by_string_and_by_facet(pack):
    class Runner(CreatorFacet):
        """Runs itself."""

    a = pack("a", oprack_ops=lambda register: [register.op(Plain), register.operator("plain", Runner)])
    manager = manager_of(a)
    assert manager.operator_class("plain") is Runner
    from oprack.runtime.feed_fetch import FeedOp

    assert manager.operator_class("feed") is FeedOp
    with pytest.raises(UnknownOpError):
        manager.operator_class("nothing")
