"""Which distribution brings what: the table, the messages that use it, and `oprack ops --missing`."""

from __future__ import annotations

import json
from pathlib import Path

import oprack
import pytest
from oprack import PackManager
from oprack.cli.main import main
from oprack.errors import MissingPackError, UnknownLayerError, UnknownOpError
from oprack.names import tables
from oprack.packs.manager import use_manager
from oprack.python.rooms import AbsentRoomError, AbsentRooms
from oprack.testing.review.manifest import homes_text

MODEL = Path(__file__).parent / "data" / "small_models" / "resnet.pdmodel"


@pytest.fixture(scope="module")
def bare():
    """A manager without any pack but the core's own."""
    return PackManager(entry_points=[], environ={})


def test_the_table_says_what_the_installed_packs_bring():
    manager = oprack.default_manager()
    # a plugin that brings neither ops, names, formats, commands nor passes, but a place, has no row
    ours = [p for p in manager.packs() if p.name != "core" and (p.op_types or p.layers)]
    formats = {(owner, json.loads(key)["suffix"]) for owner, key, _ in manager.targets("format")}
    assert formats == {(d, suffix) for d, kinds in tables.homes().items() for suffix in kinds.get("formats", ())}
    commands = {(owner, json.loads(key)["name"]) for owner, key, _ in manager.targets("command")}
    assert commands == {(d, name) for d, kinds in tables.homes().items() for name in kinds.get("commands", ())}
    passes = {(owner, json.loads(key)["name"]) for owner, key, _ in manager.targets("pass")}
    assert passes == {(d, name) for d, kinds in tables.homes().items() for name in kinds.get("passes", ())}
    others = {owner for owner, _ in formats | commands | passes}
    assert {p.distribution for p in ours} | others == set(tables.homes())
    for pack in ours:
        kinds = tables.homes()[pack.distribution]
        assert sorted(kinds.get("ops", ())) == sorted(pack.op_types)
        unnamed = ("ops", "roles", "formats", "commands", "passes")
        named = {f"{kind}.{name}" for kind, names in kinds.items() if kind not in unnamed for name in names}
        assert named == {key for key in pack.layers if not key.startswith(("fuzz.", "fuzz_lives."))}
    roles = [(owner, role) for owner, role, _ in manager.targets("role")]
    assert sorted(roles) == sorted((d, r) for d, kinds in tables.homes().items() for r in kinds.get("roles", ()))


def test_no_two_distributions_bring_one_op_in_the_table():
    found = [t for kinds in tables.homes().values() for t in kinds.get("ops", ())]
    assert len(found) == len(set(found)) == len(list(tables.names("ops")))


def test_rendering_is_stable_and_read_back():
    text = homes_text(
        {"oprack-b": {"ops": ["z", "a"] + [f"long_name_{i:02}" for i in range(20)]}, "oprack-a": {"roles": ["r"]}}
    )
    assert text == homes_text(
        {"oprack-a": {"roles": ["r"]}, "oprack-b": {"ops": [*map("long_name_{:02}".format, range(20)), "a", "z"]}}
    )
    assert homes_text({"oprack-none": {"ops": []}}) == homes_text({})
    assert text.index("[oprack-a]") < text.index("[oprack-b]") and max(map(len, text.splitlines())) <= 120


# Messages -------------------------------------------------------------------------------------------------------------
MESSAGES = [
    ("conv2d", "`pip install oprack-nn` adds it"),
    ("sequence_pool_grad", "`pip install oprack-sequence` adds it"),
    ("send_and_recv", "none of oprack's own packs does, though Paddle has it"),
    ("conv2e", "(did you mean conv2d"),
]


@pytest.mark.parametrize(("op_type", "text"), MESSAGES)
def test_an_unknown_op_says_what_to_install(bare, op_type, text):
    with pytest.raises(UnknownOpError) as caught:
        bare.op_info(op_type)
    assert text in str(caught.value)
    with pytest.raises(MissingPackError) as all_of_them:
        bare.require_ops([op_type, "feed"])
    assert text in str(all_of_them.value)


def test_an_unknown_name_says_what_to_install(bare):
    for namespace, name, owner in (
        ("layers", "fc", "oprack-nn"),
        ("optimizer", "ClipGradByNorm", "oprack-optimizer"),
        ("initializer", "Constant", "oprack-tensor"),
    ):
        with pytest.raises(UnknownLayerError, match=f"`pip install {owner}` adds it"):
            bare.layer(namespace, name)


def test_an_unknown_command_says_what_to_install(capsys):
    with pytest.raises(SystemExit) as caught:
        main(["lunch"])
    assert caught.value.code == 2 and "no command 'lunch' (did you mean launch?)" in capsys.readouterr().err
    with use_manager(PackManager(environ={"OPRACK_PACKS": "math"})), pytest.raises(SystemExit):
        main(["serve", "model"])
    assert "no installed pack brings the command 'serve'; pack serve" in capsys.readouterr().err
    with use_manager(PackManager(entry_points=[], environ={})), pytest.raises(SystemExit):
        main(["launch", "train.py"])
    assert "`pip install oprack-parallel` adds it" in capsys.readouterr().err


# oprack ops --missing -------------------------------------------------------------------------------------------------
def missing(capsys, *arguments):
    code = main(["ops", *arguments])
    return code, capsys.readouterr().out


def test_missing_ops_of_a_model(capsys, monkeypatch):
    code, text = missing(capsys, "--missing", str(MODEL))
    assert code == 0 and text.startswith("0 of ")
    monkeypatch.setenv("OPRACK_PACKS", "")
    code, text = missing(capsys, "--missing", str(MODEL), "--json")
    rows = {row["op"]: row for row in json.loads(text)}
    assert code == 1 and rows["conv2d"] == {
        "op": "conv2d",
        "distribution": "oprack-nn",
        "saved_with": "",
        "state": "pack nn is blocked",
        "reason": "",
    }
    assert "feed" not in rows
    code, text = missing(capsys, "pool*", "--missing", str(MODEL))
    assert [line.split()[0] for line in text.splitlines()[1:-2]] == ["pool2d"]


def test_missing_ops_of_paddle(capsys):
    code, text = missing(capsys, "--missing", "--json")
    rows = json.loads(text)
    installed = set(oprack.default_manager().op_types())
    assert code == 1 and [r["op"] for r in rows] == [t for t in tables.paddle_ops() if t not in installed]
    assert not any(r["distribution"] for r in rows) and all(r["reason"] for r in rows)
    assert len(tables.paddle_ops()) == 784


def test_a_reason_is_given_for_each_op_that_no_distribution_brings_and_for_no_other():
    brought = {*tables.names("ops"), "feed", "fetch"}  # core's own
    assert sorted(tables.missing_reasons()) == [t for t in tables.paddle_ops() if t not in brought]
    assert tables.why_missing("send_and_recv") == tables.missing_reasons()["send_and_recv"]
    assert tables.why_missing("conv2d") == tables.why_missing("not_an_op") == ""


def test_missing_ops_are_printed_with_their_reason(capsys):
    _, text = missing(capsys, "pull_sparse", "--missing")
    assert "none: a part of Paddle's parameter servers" in text


def test_paddles_list_is_that_of_the_reference():
    reference = Path(__file__).parent / "data" / "reference" / "op_protos.json"
    assert sorted(json.loads(reference.read_text("utf-8"))["ops"]) == list(tables.paddle_ops())


def test_a_core_without_the_tables_says_what_brings_them():
    """pip installs them with the core, but they can be uninstalled."""
    with pytest.raises(AbsentRoomError, match=r"^no module 'oprack.names': .* pip install oprack-names"):
        AbsentRooms.find_spec("oprack.names")


def test_the_command_checks_the_table(capsys):
    root = Path(__file__).parents[1]
    assert main(["manifest", "--homes", "--check", str(root / "op_packages" / "amp")]) == 1
    assert "homes.toml: stale" in capsys.readouterr().out
    projects = sorted(p for d in ("op_packages", "plugins") for p in root.glob(f"{d}/*/pyproject.toml"))
    paths = [p.parent for p in projects if "oprack.packs" in p.read_text("utf-8")]
    assert main(["manifest", "--homes", "--check", *map(str, paths)]) == 0


def test_packs_are_found_by_what_they_bring(capsys, monkeypatch):
    assert main(["packs", "--search", "gru_unit"]) == 0
    assert "oprack-sequence" in capsys.readouterr().out
    assert main(["packs", "--search", "no_pack_has_this"]) == 1
    told = {"oprack-snake": {"summary": "Periodic activations", "url": "https://example.org", "brings": "snake_act"}}
    monkeypatch.setattr("oprack.names.known.known_packs", lambda: told)
    for word in ("SNAKE_act", "periodic", "oprack-snake"):
        assert main(["packs", "--search", word]) == 0
        out = capsys.readouterr().out
        assert "oprack-snake  no" in out and "`pip install oprack-snake` adds" in out
    assert main(["packs", "--search", "snake", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)[0]["url"] == "https://example.org"
