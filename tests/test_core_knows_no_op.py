"""Core knows no op: no op type of any pack stands in its code, and the roles that it asks for are played."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import oprack
import pytest
from oprack import PackManager, Program, layers, program_guard, use_manager
from oprack.cli.main import main
from oprack.errors import DefinitionError, UnknownLayerError, UnknownOpError, UnknownRoleError
from oprack.names.tables import paddle_ops
from oprack.op import REQUIRED, Attr, Input, OpDef, Output
from oprack.op.vocabulary import ROLES
from oprack.packs import PackWarning, op_for
from oprack.packs.checks import role_problems
from oprack.parallel import Communicator
from oprack.types import AttrType

PARTS = [Path(part) for part in oprack.__path__]  # of the core, and of distributions that bring rooms beside it

# Words that are op types by chance, in the files where they mean something else.
OTHERWISE_MEANT = {
    "data/workers.py": {"seed"},  # of random numbers
    "autodiff/backward.py": {"shape"},  # an attribute of the role constant, as in the next five
    "functional/op_function.py": {"shape"},
    "interpreter/symbol.py": {"mul", "pow"},  # Python's operators, as in the next one
    "layers/operators.py": {"matmul"},
    "layers/helper.py": {"shape"},
    "layers/variable.py": {"shape"},  # an attribute of ops that fill a variable
    "desc/var_desc.py": {"shape"},  # a field of VarDesc, as in the next two
    "runtime/prepared.py": {"shape"},
    "checkpoint/__init__.py": {"shape", "size"},  # a tensor's, and a file's in bytes
    "checkpoint/manifest.py": {"shape", "size"},
    "nn/init.py": {"leaky_relu"},  # a nonlinearity, as PyTorch names it
    "nn/module.py": {"shape"},  # Python's attribute of arrays and tensors
    "nn/parameter.py": {"shape", "seed"},  # that, and an attribute of ops that draw
    # how tensors lie over ranks, and MPI's reductions and split
    "op/sbp/__init__.py": {"split", "partial_sum", "broadcast"},
    "op/sbp/rules.py": {"mean", "sum", "reduce_all"},  # reduce_all: an attribute
    "op/sbp/signature.py": {"partial_sum", "broadcast"},
    "parallel/__init__.py": {"partial_sum", "seed"},  # seed: the function
    "parallel/training/batches.py": {"seed"},
    "parallel/training/between_stages.py": {"shape"},  # of what is sent, as in the next one
    "parallel/training/checkpointer.py": {"shape"},
    "parallel/communicator.py": {"sum"},
    "parallel/reductions.py": {"sum"},  # the name of a reduction
    "parallel/programs/boxing_ops.py": {"scale"},  # of the role affine
    "parallel/simulated.py": {"sum", "shape"},  # shape: an attribute of values
    "testing/fuzz/examples/example.py": {"broadcast", "shape"},
    "testing/worlds.py": {"sum", "all_reduce", "all_gather", "reduce_scatter"},  # collectives that are started
    "runtime/feed_fetch.py": {"shape"},
    "runtime/kernel_operator.py": {"shape"},
    "runtime/plan/record.py": {"shape"},
    "eager_tensor/tensor.py": {"shape"},
    "tensor/scope.py": {"shape"},
    "tensor/sparse_tensor.py": {"shape"},
    "tensor/shape_only.py": {"shape", "size", "where"},  # slots of a class; who asks, in a message
    "testing/fuzz/runs/outcome.py": {"shape", "fc"},  # fc: letters of NumPy for kinds of dtypes, as in the next six
    "runtime/checks.py": {"fc"},
    "eager_tensor/meta.py": {"fc"},
    "testing/fuzz/lives/actions.py": {"set_value", "size"},  # a method, and metadata of fields
    "testing/fuzz/lives/programs.py": {"shape", "scale"},  # what is done to a variable
    "testing/fuzz/lives/life.py": {"shape", "size"},  # kinds of differences, and metadata of fields
    "testing/fuzz/examples/nets.py": {"fill"},  # a change of a generated value, as in the next two
    "testing/fuzz/examples/ops.py": {"fill"},
    "testing/fuzz/examples/value_changes.py": {"fill"},
    "testing/cases.py": {"fc"},
    "testing/any_kind.py": {"fc"},
    "testing/fuzz/examples/values.py": {"fc"},
    "testing/runner.py": {"fc"},
    "functional/tensor_conversions.py": {"set_value"},  # the method, in a message
    "eager_tensor/methods.py": {"set_value"},  # as there
    "kernel/invoke.py": {"size"},  # of an array
    "testing/fuzz/searching.py": {"size"},  # how large an example is
    "cli/op.py": {"where", "empty"},  # a heading, and an op without a gradient
    "__init__.py": {"seed"},  # the function that sets the seed of draws, as in the next six
    "runtime/prepared_function.py": {"shape"},  # an attribute of arrays
    "interpreter/__init__.py": {"seed"},
    "eager_tensor/devices.py": {"seed"},
    "runtime/run_context.py": {"seed"},
    "testing/fuzz/campaign.py": {"seed"},
    "testing/fuzz/__main__.py": {"seed"},
    "ir/pattern.py": {"where"},  # a condition of a pattern
    "packs/register.py": {"fold"},  # a stage of passes
    "testing/review/wheel.py": {"dist"},  # a folder of built wheels
}


class Twice(OpDef, type="twice"):
    """Out = 2 X."""

    X = Input("Tensor.")
    Factor = Input("Tensor.")
    Out = Output("As X.")
    rate = Attr(REQUIRED, "Rate.", type=AttrType.FLOAT)

    def infer_shape(ctx):
        ctx.set_dim("Out", ctx.dim("X"))


def strings(file: Path) -> set[str]:
    """Every string constant of a file, and the parts between the braces of f-strings."""
    return {
        node.value
        for node in ast.walk(ast.parse(file.read_text("utf-8")))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }


def words() -> dict[str, set[str]]:
    """File of core -> op types of installed packs that stand in it, alone or in a list such as "relu tanh"."""
    op_types = set(oprack.default_manager().op_types()) - {"feed", "fetch"}
    assert len(op_types) > 500
    found = {}
    for part, file in ((p, f) for p in PARTS for f in p.rglob("*.py")):
        if not file.name.endswith("_pb2.py"):
            parts = [set(re.split(r"[\s,;]+", text.strip())) for text in strings(file)]
            found[str(file.relative_to(part))] = {word for words in parts if words <= op_types for word in words}
    return {file: names for file, names in found.items() if names}


def test_no_op_type_of_a_pack_stands_in_core():
    # Ops between ranks are named after the collectives that the room of several ranks has itself.
    collectives = {name for name in vars(Communicator) if not name.startswith("_")}
    found = {f: names - collectives if f.startswith("parallel/") else names for f, names in words().items()}
    known = {file: names - OTHERWISE_MEANT.get(file, set()) for file, names in found.items()}
    assert {file: names for file, names in known.items() if names} == {}
    unused = {file: names - found.get(file, set()) for file, names in OTHERWISE_MEANT.items()}
    assert {file: names for file, names in unused.items() if names} == {}, "words that no file has"


# Roles ----------------------------------------------------------------------------------------------------------------
def test_no_role_has_the_name_of_an_op():
    assert not set(ROLES) & {*oprack.default_manager().op_types(), *paddle_ops()}


def test_the_op_that_plays_a_role_has_its_signature():
    roles = oprack.default_manager().extensions.roles()
    assert len(roles) > len(ROLES)  # those of captured functions and of ranks
    assert all(r.misfits(oprack.op_info(op_for(n)).proto) == [] for n, r in roles.items())


def test_doctor_finds_an_op_of_another_signature(pack_of):
    assert role_problems(oprack.default_manager()) == []
    manager = PackManager([pack_of("mine", {"add": "twice", "copy": "nowhere"})], environ={})
    manager.register_op(Twice)
    first, second = role_problems(manager)
    assert first.startswith("role add of oprack-mine by op twice: it has no input Y; it has no attribute axis; ")
    assert "Factor is not dispensable; rate has no default; expected (X, Y, *, axis) -> Out" in first
    assert second.startswith("role copy of oprack-mine by op nowhere: UnknownOpError: ")


def test_oprack_op_says_which_roles_an_op_plays(capsys):
    assert main(["op", "scale"]) == 0
    assert "Plays: affine (programs that oprack.parallel.distribute splits)" in capsys.readouterr().out


def test_a_role_that_nobody_plays_names_who_wants_it_and_what_to_install():
    with use_manager(PackManager(entry_points=[], environ={})), program_guard(Program()):
        x = layers.data("x", [2])
        with pytest.raises(UnknownRoleError) as caught:
            x.astype("float64")
    text = str(caught.value)
    assert isinstance(caught.value, UnknownOpError)
    assert "role 'convert' has no op, but astype needs it" in text and "(X, *, in_dtype, out_dtype) -> Out" in text
    assert "`pip install oprack-tensor`" in text and "register.role('convert', OP_TYPE)" in text


@pytest.mark.parametrize(
    ("use", "sign", "pack"),
    [
        (lambda x: x * x, "*", "math"),
        (lambda x: 1 - x, "-", "math"),
        (lambda x: x == x, "==", "math"),
        (lambda x: ~x, "~", "math"),
        (lambda x: x[0], "[...]", "tensor"),
    ],
)
def test_an_operator_that_nobody_brings_says_what_to_install(use, sign, pack):
    with use_manager(PackManager(entry_points=[], environ={})), program_guard(Program()):
        for x in (layers.data("x", [2]), oprack.to_tensor([1, 2])):
            with pytest.raises(UnknownLayerError) as caught:
                use(x)
            assert str(caught.value).startswith(f"operator {sign} of {type(x).__name__}s is unknown: no installed pack")
            assert f"`pip install oprack-{pack}` adds it" in str(caught.value)
        with pytest.raises(AttributeError, match="`pip install oprack-tensor`"):
            oprack.to_tensor([1, 2]).reshape([2, 1])
    assert oprack.to_tensor([1, 2]).reshape([2, 1]).shape == (2, 1)


def test_an_operator_of_a_blocked_pack_says_so():
    with use_manager(PackManager(blocked=["math"])):
        with pytest.raises(UnknownLayerError, match=r"pack math \(oprack-math .*\) should, but is blocked"):
            oprack.to_tensor([1.0]) + 1
        assert oprack.to_tensor([[1.0, 2.0]])[0].tolist() == [1.0, 2.0]
    assert (oprack.to_tensor([1.0]) + 1).tolist() == [2.0]


def test_a_role_of_a_blocked_pack_says_so():
    manager = PackManager(blocked=["math"])
    with pytest.raises(UnknownRoleError, match=r"pack math \(oprack-math .*\) should, but is blocked"):
        manager.op_for("add")
    assert manager.op_for("copy") == oprack.default_manager().op_for("copy")


def test_hook_oprack_vocabulary_follows_the_packs_in_use(pack_of):
    before = op_for("add")
    manager = PackManager([pack_of("mine", {"add": "elementwise_sub"})], environ={})
    assert manager.packs()[1].hooks == ("oprack_vocabulary",)
    with use_manager(manager):
        assert op_for("add") == manager.op_for("add") == "elementwise_sub" != before
        manager.block("mine")
        with pytest.raises(UnknownRoleError):
            op_for("add")
    assert op_for("add") == before


def test_a_role_that_two_packs_play_names_both(pack_of):
    manager = PackManager([pack_of("one", {"add": "x"}), pack_of("two", {"add": "y"})], environ={})
    with pytest.warns(PackWarning, match=r"role 'add' is brought by one .* and by two .*OPRACK_PREFER=two takes"):
        assert manager.op_for("add") == "x"
    manager.prefer("two")
    assert manager.op_for("add") == "y"


def test_a_role_that_nothing_asks_for_is_a_note_and_does_not_break_its_pack(pack_of):
    manager = PackManager([pack_of("typo", {"addd": "elementwise_add"})], environ={})
    assert manager.packs()[1].status == "ok" and manager.op_for("addd") == "elementwise_add"
    notes = []
    assert role_problems(manager, notes) == []
    assert notes == [
        "role addd of oprack-typo by op elementwise_add: nothing that is installed asks for it (did you mean add?)"
    ]
    with pytest.raises(DefinitionError, match="'subtrakt' is no role of the vocabulary"):
        op_for("subtrakt")


def test_a_pack_adds_roles_of_its_own(pack_of):
    asks = pack_of("asks", {}, {"halves": ("X -> Out", "X / 2", "oprack_asks.halved")})
    with pytest.raises(UnknownRoleError, match=r"role 'halves' has no op, but oprack_asks.halved needs it: X / 2, as "):
        PackManager([asks], environ={}).op_for("halves")
    plays = pack_of("plays", {"halves": "twice"})
    manager = PackManager([asks, plays], environ={})
    manager.register_op(Twice)
    assert manager.op_for("halves") == "twice"
    assert role_problems(manager)[0].startswith("role halves of oprack-plays by op twice: Factor is not dispensable")


@pytest.mark.parametrize("signature", ["X -> ", "X", ""])
def test_a_role_without_an_output_is_refused(pack_of, signature):
    manager = PackManager([pack_of("bad", {}, {"halves": (signature, "X / 2", "halved")})], environ={})
    with pytest.warns(UserWarning, match=r"pack bad .*is broken.*role 'halves' has the signature .*expected one such"):
        assert manager.packs()[1].status == "broken"


@pytest.fixture
def pack_of(monkeypatch):
    """An entry point whose pack says which ops play roles, and adds some: pack_of("mine", {"add": "my_add"})."""
    import sys
    from types import ModuleType, SimpleNamespace

    def make(name, roles, new_roles=()):
        module = ModuleType(f"fixture_roles_{name}")

        def oprack_vocabulary(register):
            for role, op_type in roles.items():
                register.role(role, op_type)
            for role in new_roles:
                register.new_role(role, *new_roles[role])

        module.oprack_vocabulary = oprack.hookimpl(oprack_vocabulary)
        monkeypatch.setitem(sys.modules, module.__name__, module)
        return SimpleNamespace(
            name=name, value=module.__name__, dist=SimpleNamespace(name=f"oprack-{name}", version="1.0")
        )

    return make
