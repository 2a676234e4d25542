"""What packs bring through hooks, and registrations that break a pack."""

from __future__ import annotations

import json
import re
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from oprack.cli.main import build_parser, main, pack_commands
from oprack.errors import (
    AlreadyExistsError,
    CorruptModelError,
    PackImportError,
    UnknownOpError,
)
from oprack.io import load_from_buffers, load_inference_model
from oprack.io.inference_model import ReadModel, check_parameters, files_beside, formats, model_files
from oprack.op import OpVersion
from oprack.packs import PackWarning, use_manager
from oprack.program import Program
from oprack.tensor import Scope
from plain_packs import Plain, PlainGrad, PlainMaker, PlainShape, manager_of, plain, plain_cuda


def test_hook_oprack_ops_takes_a_definition_class(pack):
    manager = manager_of(pack("a", oprack_ops=lambda register: register.op(Plain)))
    assert manager.op_types() == ["feed", "fetch", "plain"]
    assert (manager.owner("plain"), manager.op_info("plain").pack) == ("oprack-a", "oprack-a")


def test_hook_oprack_ops_takes_facets_in_any_order_also_from_another_pack(pack):
    a = pack("a", oprack_ops=lambda register: register.operator("plain", PlainShape, PlainMaker))
    b = pack("b", oprack_ops=lambda register: register.operator("plain", PlainGrad))
    info = manager_of(b, a).op_info("plain")
    assert info.owners == {
        "infer_shape": "oprack-a",
        "proto": "oprack-a",
        "checker": "oprack-a",
        "grad_op_maker": "oprack-b",
    }
    assert isinstance(info.grad_op_maker, PlainGrad)


def test_facet_set_twice_by_one_pack_is_refused(pack):
    a = pack("a", oprack_ops=lambda register: [register.op(Plain), register.operator("plain", PlainShape)])
    with pytest.raises(AlreadyExistsError, match="'infer_shape' is set by oprack-a, but oprack-a already set it"):
        manager_of(a).op_info("plain")


def test_facets_alone_define_no_op(pack):
    manager = manager_of(pack("a", oprack_ops=lambda register: register.operator("plain", PlainGrad)))
    assert not manager.has_op("plain")
    with pytest.raises(UnknownOpError):
        manager.op_info("plain")


def test_hook_oprack_kernels_brings_kernels_for_ops_of_another_pack(pack):
    a = pack("a", oprack_ops=lambda register: register.op(Plain))
    b = pack("b", oprack_kernels=lambda register: [register.kernel(plain), register.kernel(plain_cuda)])
    manager = manager_of(a, b)
    assert manager.place_kinds("plain") == ["cpu", "cuda"]
    assert [(s.place, s.owner, s.function) for s in manager.kernels_listing("plain")] == [
        ("cpu", "oprack-b", plain),
        ("cuda", "oprack-b", plain_cuda),
    ]
    assert manager.kernel_map("plain", "cpu") is manager.kernel_map("plain", "cpu")
    assert len(manager.kernel_map("plain", "npu")) == 0


def test_hook_oprack_kernels_takes_a_module(pack, good):
    b = pack("b", oprack_kernels=lambda register: register.module("fixture_good.kernels.twice"))
    manager = manager_of(*good, b)
    # the manifest of the good pack names the same function: it counts once
    assert [s.owner for s in manager.kernel_map("fixture_twice", "cpu")] == ["oprack-fixture-good"]


def test_hook_oprack_places(pack):
    a = pack("a", oprack_places=lambda register: register.place("fpga", "collections:OrderedDict"))
    manager = manager_of(a)
    from collections import OrderedDict

    assert manager.extensions.place_factory("fpga") is OrderedDict
    assert manager.extensions.place_factory("npu") is None
    b = pack("b", oprack_places=lambda register: register.place("fpga", "collections:Counter"))
    with pytest.warns(PackWarning, match="place 'fpga' is brought by a .* and by b .*: that of a is used"):
        assert manager_of(a, b).extensions.place_factory("fpga") is OrderedDict
    c = pack("c", oprack_places=lambda register: register.place("fpga", "collections:Nothing"))
    with pytest.raises(PackImportError, match=r"place fpga of oprack-c.*'collections:Nothing' names nothing"):
        manager_of(c).extensions.place_factory("fpga")


def test_hook_oprack_passes(pack):
    def brings(register):
        register.pass_("grow", "os:getcwd", stage="fuse", place="cpu", reorders_sums=True)

    ((owner, key, target),) = manager_of(pack("b", oprack_passes=brings)).targets("pass")
    assert (owner, target) == ("oprack-b", "os:getcwd")
    options = json.loads(key)
    assert (options["name"], options["stage"], options["place"]) == ("grow", "fuse", "cpu")
    assert options["reorders_sums"] and options.get("inference_only", True)


def test_hook_oprack_commands(pack, monkeypatch, capsys):
    def configure(parser):
        parser.add_argument("--times", type=int)
        parser.set_defaults(run=lambda args: print("ran", args.times) or 7)

    monkeypatch.setitem(sys.modules, "fixture_command", SimpleNamespace(configure=configure))

    def brings(name, target="fixture_command:configure"):
        return lambda register: register.command(name, target, "do a thing")

    with use_manager(manager_of(pack("a", oprack_commands=brings("thing")))):
        assert main(["thing", "--times", "3"]) == 7
        assert capsys.readouterr().out == "ran 3\n"
        assert "do a thing" in build_parser().format_help()
    both = manager_of(pack("a", oprack_commands=brings("thing")), pack("b", oprack_commands=brings("thing")))
    with use_manager(both), pytest.warns(PackWarning, match="'thing' is brought by a .* and by b .*: that of a is"):
        assert pack_commands()["thing"].owner == "oprack-a"
    with (
        use_manager(manager_of(pack("c", oprack_commands=brings("doctor")))),
        pytest.warns(PackWarning, match="'doctor' of oprack-c is left out, since oprack itself brings"),
    ):
        assert not pack_commands()
    with use_manager(manager_of(pack("d", oprack_commands=brings("thing", "fixture_command:nothing")))):
        assert main(["thing"]) == 4
        assert "command thing of oprack-d" in capsys.readouterr().err
    for name in ("", "a b", "--x", "../x"):
        manager = manager_of(pack("e", oprack_commands=brings(name)))
        with pytest.warns(PackWarning, match="is no name of a command"):
            manager.packs()


def test_hook_oprack_formats(pack, monkeypatch, tmp_path):
    """A file is read by what it begins with; a folder and a path without ending are searched for the suffix."""
    program = Program()
    block = program.global_block()
    block.append_op("feed", {"X": "feed"}, {"Out": "x"}, {"col": 0})
    block.append_op("fetch", {"X": "x"}, {"Out": "fetch"}, {"col": 0})
    seen = []
    monkeypatch.setitem(sys.modules, "fixture_format", SimpleNamespace(read=lambda data: seen.append(data) or program))
    (tmp_path / "net.odd").write_bytes(b" \n<odd>")

    def brings(register):
        register.format(".odd", "fixture_format:read", starts="<odd")

    with use_manager(manager_of(pack("a", oprack_formats=brings))):
        for path in (tmp_path, tmp_path / "net", tmp_path / "net.odd"):
            assert load_inference_model(path, Scope()).feed_names == ["x"]
        assert load_from_buffers(b"<odd", b"", Scope()).fetch_names == ["x"]
        assert [bytes(data) for data in seen] == [b" \n<odd>"] * 3 + [b"<odd"]
        with pytest.raises(CorruptModelError, match="4 bytes are no program"):
            load_from_buffers(b"odd>", b"", Scope())
    both = manager_of(pack("a", oprack_formats=brings), pack("b", oprack_formats=brings))
    with use_manager(both), pytest.warns(PackWarning, match="'.odd' is brought by a .* and by b .*: that of a is used"):
        assert load_inference_model(tmp_path, Scope()).feed_names == ["x"]


def test_a_format_may_hold_its_parameters_and_be_written(pack, monkeypatch, tmp_path):
    """It gets the folder of the file, and returns arrays; a folder's files are told apart by the names in its bytes."""
    program = Program()
    block = program.global_block()
    block.create_var("w", shape=[2], dtype="float32", persistable=True)
    block.append_op("fetch", {"X": "w"}, {"Out": "fetch"}, {"col": 0})
    folders, weights = [], tmp_path / "weights.bin"
    weights.write_bytes(b"12345678")
    (tmp_path / "net.odd").write_bytes(b"\x08 weights.bin")

    def read(data, folder):
        folders.append(folder)
        return ReadModel(program, {"w": np.ones(2, "float32")}, [weights] if folder else [])

    def write(model, scope, path):
        path.write_bytes(b"written")
        return [path], ["a remark"]

    monkeypatch.setitem(sys.modules, "fixture_format", SimpleNamespace(read=read, write=write))

    def brings(register):
        register.format(
            ".odd", "fixture_format:read", starts="\x08", holds_parameters=True, writer="fixture_format:write"
        )

    with use_manager(manager_of(pack("a", oprack_formats=brings))):
        for load in (
            lambda scope: load_inference_model(tmp_path / "net.odd", scope),
            lambda scope: load_from_buffers(b"\x08", b"", scope),
        ):
            scope = Scope()
            assert load(scope).fetch_names == ["w"] and scope.find_var("w").value.array.tolist() == [1.0, 1.0]
        assert folders == [tmp_path, None]
        check_parameters(tmp_path / "net.odd", program)  # there is no .pdiparams, and none is asked for
        for files in (model_files(tmp_path / "net.odd"), files_beside(tmp_path / "net.odd")):
            assert weights in files.values()
        (found,) = formats()
        assert found.write(None, Scope(), tmp_path / "out.odd") == ([tmp_path / "out.odd"], ["a remark"])


def test_hook_oprack_op_versions(pack):
    version = OpVersion("plain").checkpoint("add offset", ("new_attr", "offset", 0.0))
    a = pack("a", oprack_ops=lambda register: register.op(Plain))
    b = pack("b", oprack_op_versions=lambda register: register.op_version(version))
    assert manager_of(a).op_version("plain") == 0
    manager = manager_of(a, b)
    assert manager.op_version("plain") == manager.op_info("plain").version == 1


def test_hook_oprack_observers(pack):
    seen = object()
    a = pack("a", oprack_observers=lambda register: [register.observer(seen), register.observer("os:path")])
    b = pack("b", oprack_observers=lambda register: register.observer("no_such_module:x"))
    manager = manager_of(a, b)
    import os

    with pytest.warns(PackWarning, match="observer of oprack-b.*no_such_module"):
        assert manager.extensions.observers() == [seen, os.path]
    assert manager.extensions.observers() == [seen, os.path]


def fuse(register, name, target, **options):
    register.pass_(name, target, stage="fuse", **options)


BAD_CALLS = [
    (
        lambda r: fuse(r, "a", len),
        "DefinitionError",
        r"pass_('a', <built-in function len>); expected a string",
    ),
    (
        lambda r: fuse(r, "a", "m:f", after="b"),
        "DefinitionError",
        "after='b', before=()); expected a name, and lists",
    ),
    (lambda r: fuse(r, "a", "nothing"), "DefinitionError", "pass 'nothing'; expected a string such as"),
    (
        lambda r: [fuse(r, "a", "m:f"), fuse(r, "a", "m:g")],
        "DefinitionError",
        "pass 'a' is registered twice",
    ),
    (lambda r: r.op(PlainMaker), "DefinitionError", "is no op; expected class Name"),
    (lambda r: [r.op(Plain), r.op(Plain)], "DefinitionError", "registered twice by this pack"),
    (lambda r: r.operator("plain", 3), "DefinitionError", "3 is no facet; expected classes derived from OpMaker"),
    (lambda r: r.operator("plain"), "DefinitionError", "has no facet"),
    (lambda r: r.kernel(len), "DefinitionError", "is no kernel; expected a function decorated with @kernel"),
    (lambda r: r.module("json"), "DefinitionError", "'json' has no function decorated with @kernel"),
    (lambda r: r.module("no_such_module"), "PackImportError", "no_such_module"),
    (lambda r: r.op_version("plain"), "DefinitionError", "expected OpVersion"),
    (lambda r: r.place("fpga", "collections"), "DefinitionError", "expected a string such as 'my_pack.module:name'"),
    (lambda r: r.format("json", "m:f", starts="{"), "DefinitionError", "expected a suffix such as '.json'"),
    (lambda r: r.format(".json", "m:f", starts=""), "DefinitionError", "text with which these files begin"),
    (
        lambda r: [r.format(".a", "m:f", starts="{"), r.format(".a", "m:g", starts="{")],
        "DefinitionError",
        "format '.a' is registered twice",
    ),
    (lambda r: r.manifest(""), "ManifestError", "write register.manifest(__package__)"),
    (lambda r: r.manifest("json"), "ManifestError", "can't be read"),
    (lambda r: r.manifest("no_such_package"), "ManifestError", "has no directory"),
    (lambda r: 1 / 0, "PackError", "a hook failed: ZeroDivisionError: division by zero"),
]


@pytest.mark.parametrize(("call", "cls", "text"), BAD_CALLS)
def test_bad_registration_breaks_the_pack_and_points_at_its_line(pack, call, cls, text):
    manager = manager_of(pack("a", oprack_ops=call))
    with pytest.warns(PackWarning, match=re.escape(text)):
        info = manager.packs()[1]
    assert info.status == "broken" and info.error.startswith(cls)
    import traceback

    assert __file__ in "".join(traceback.format_exception(info.exception))


def test_unknown_hook_and_no_hook_are_reported(pack, monkeypatch):
    with pytest.warns(PackWarning, match="unknown hook 'oprack_opps'"):
        assert manager_of(pack("a", oprack_opps=print)).packs()[1].status == "broken"
    with pytest.warns(PackWarning, match="implements no hook; expected functions decorated with @oprack.hookimpl"):
        assert manager_of(pack("a")).packs()[1].status == "broken"


def test_asking_for_ops_during_discovery_is_refused(pack):
    manager = manager_of(pack("a", oprack_ops=lambda register: manager.op_types()))
    with pytest.warns(PackWarning, match="a pack asks for ops while packs are being discovered"):
        assert manager.op_types() == ["feed", "fetch"]
