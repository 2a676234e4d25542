"""Writing programs by hand, with the small ops of conftest: programs, names, variables, helpers, errors."""

from __future__ import annotations

import threading

import layers_rack
import numpy as np
import oprack
import pytest
from oprack import PackManager, layers, use_manager
from oprack.autodiff.appender import OpRole
from oprack.errors import (
    AlreadyExistsError,
    AttributeValueError,
    InvalidArgumentError,
    NotFoundError,
    PreconditionNotMetError,
    UnknownLayerError,
    UnknownOpError,
)
from oprack.layers import LayerHelper, ParamAttr, append_op, unique_name, variable_of
from oprack.types import AttrType, VarType


def double(x, **attrs):
    return LayerHelper("double").apply("double", {"X": x}, attrs)


# Programs and names ---------------------------------------------------------------------------------------------------
def test_program_guard_nests_and_restores():
    outer, a, b = oprack.default_main_program(), oprack.Program(), oprack.Program()
    with oprack.program_guard(a, b):
        assert (oprack.default_main_program(), oprack.default_startup_program()) == (a, b)
        with pytest.raises(RuntimeError), oprack.program_guard(oprack.Program()):
            assert oprack.default_startup_program() is b
            raise RuntimeError
        assert oprack.default_main_program() is a
    assert oprack.default_main_program() is outer
    with pytest.raises(InvalidArgumentError, match=r"startup_program is str; expected an oprack\.Program"):
        oprack.program_guard(a, "b").__enter__()


def test_guards_hold_for_their_own_thread():
    seen, a = [], oprack.Program()
    with oprack.program_guard(a):
        thread = threading.Thread(target=lambda: seen.append(oprack.default_main_program()))
        thread.start()
        thread.join()
    assert seen[0] is not a


def test_unique_names():
    with unique_name.guard():
        assert [unique_name.generate(k) for k in ("fc", "fc", "fc_0.w")] == ["fc_0", "fc_1", "fc_0.w_0"]
        with unique_name.guard("net_"):
            assert unique_name.generate("fc") == "net_fc_0"
        kept = unique_name.switch()
        assert unique_name.generate("fc") == "fc_0"
        unique_name.switch(kept)
        assert unique_name.generate("fc") == "fc_2"


def test_names_are_fluids(programs):
    main, _ = programs
    helper = LayerHelper("fc", bias_attr=None)
    x = layers.data("x", [None, 4])
    helper.create_parameter(None, [4, 4])
    y = helper.append_bias_op(helper.apply("double", {"X": x}))
    assert list(main.global_block().vars) == ["x", "fc_0.w_0", "fc_0.tmp_0", "fc_0.b_0", "fc_0.tmp_1"]
    assert y.name == "fc_0.tmp_1"
    assert LayerHelper("fc", name="own").name == "own"


def test_roles_and_scopes_are_recorded(programs):
    x = layers.data("x", [None])
    with layers.op_role_guard(OpRole.OPTIMIZE, [x, "x@GRAD"]), oprack.name_scope("net"), oprack.name_scope("head"):
        double(x)
    with oprack.name_scope("net"):
        double(x)
    first, second = programs[0].global_block().ops
    assert (first.attr("op_role"), first.attr("op_role_var")) == (2, ["x", "x@GRAD"])
    assert (second.attr("op_role"), second.attr("op_role_var")) == (0, [])
    assert (first.attr("op_namescope"), second.attr("op_namescope")) == ("/net/head/", "/net_1/")
    assert second.attr_types["op_role_var"] is AttrType.STRINGS
    with pytest.raises(InvalidArgumentError, match="prefix is ''"):
        oprack.name_scope("").__enter__()


# Programs: blocks and copies ------------------------------------------------------------------------------------------
def test_blocks_nest_and_their_variables_are_local(programs):
    main, _ = programs
    x = layers.data("x", [None, 2])
    block = main.create_block()
    y = double(x)
    assert y.block is block and main.current_block() is block and main.global_block().find_var(y.name) is None
    assert variable_of(main, "x").desc is x.desc
    assert main.rollback() is main.global_block()
    with pytest.raises(
        InvalidArgumentError, match=r"variable 'double_0.tmp_0' of another program or of a block that is"
    ):
        double(y)
    with pytest.raises(PreconditionNotMetError, match="block 0 has no parent"):
        main.rollback()
    with pytest.raises(NotFoundError, match="did you mean x"):
        variable_of(main, "xx")


def test_clone_for_test_drops_training(programs):
    main, _ = programs
    x = layers.data("x", [None])
    helper = LayerHelper("layer")
    w = helper.create_parameter(ParamAttr(learning_rate=0.5), [1])
    y = helper.apply("rack_add", {"X": x, "Y": w})
    with layers.op_role_guard(OpRole.BACKWARD):
        grad = double(y)
    with layers.op_role_guard(OpRole.OPTIMIZE):
        append_op("rack_add", {"X": w, "Y": grad}, {"Out": w})
    copy, test = main.clone(), main.clone(for_test=True)
    assert len(copy.global_block().ops) == 3 and copy.parameters[w.name].learning_rate == 0.5
    copy.parameters[w.name].learning_rate = 2.0
    assert w.optimize_attr == {"learning_rate": 0.5}
    (op,) = test.global_block().ops
    assert op.attr("is_test") is True and main.global_block().ops[0].attr("is_test") is False
    assert list(test.global_block().vars) == ["x", w.name, y.name]


def test_what_a_program_keeps_of_parameters_is_not_in_its_bytes(programs):
    main, _ = programs
    LayerHelper("fc").create_parameter(ParamAttr(name="w", learning_rate=0.1, regularizer=len), [2])
    parsed = oprack.Program.parse(main.serialize())
    assert parsed.parameters == {} and main.parameters["w"].regularizer is len
    assert [v.name for v in parsed.all_parameters()] == ["w"]


# data and variables ---------------------------------------------------------------------------------------------------
def test_data(programs):
    x = layers.data("x", [None, 3, -1], "int64", lod_level=1)
    assert (x.shape, x.dtype, x.lod_level, x.type) == ((-1, 3, -1), "int64", 1, VarType.LOD_TENSOR)
    assert x.stop_gradient and x.desc.need_check_feed and not x.persistable and not x.is_parameter
    assert repr(x) == "<Variable x: int64[-1, 3, -1] lod_level=1 stop_gradient in block 0>"


BAD_DATA = [
    (("", [1]), InvalidArgumentError, "name is ''"),
    (("x", 3), InvalidArgumentError, r"shape of 'x' is 3; expected a list, such as \[None, 784\]"),
    (("x", [None, 2.5]), InvalidArgumentError, r"shape of 'x' is \[None, 2\.5\]"),
    (("x", [-2]), InvalidArgumentError, "expected sizes"),
    (("x", [1], "float31"), InvalidArgumentError, "float31"),
    (("taken", [1]), AlreadyExistsError, "has a variable 'taken' already"),
]


@pytest.mark.parametrize(("arguments", "error", "text"), BAD_DATA)
def test_bad_data_says_where(programs, arguments, error, text):
    layers.data("taken", [1])
    with pytest.raises(error, match=text) as caught:
        layers.data(*arguments)
    assert 'test_layers_core.py", line ' in str(caught.value)


def test_variable_has_no_value(programs):
    x = layers.data("x", [None, 3])
    with pytest.raises(InvalidArgumentError, match=r"'x' has no value while the program is built.*layers\.cond"):
        bool(x)
    with pytest.raises(InvalidArgumentError, match=r"len\(x\): dim 0 of shape \[-1, 3\] is not known"):
        len(x)
    assert x in {x} and len({x, layers.data("y", [1])}) == 2


def test_operators_are_those_of_the_pack_in_use(programs):
    x, y = layers.data("x", [3]), layers.data("y", [3])
    for _ in range(2):
        assert (x + y).name.startswith("rack_add")
    assert [op.type for op in programs[0].global_block().ops] == ["rack_add", "rack_add"]
    assert layers.Variable.__add__ is layers_rack.plus and x.__add__.__func__ is layers_rack.plus
    with pytest.raises(UnknownLayerError, match=r"^operator \* of Variables is unknown: .*register\.layer\('mul', '"):
        x * y
    with pytest.raises(UnknownLayerError, match=r"^operator == of Variables is unknown"):
        x == y  # noqa: B015
    with use_manager(PackManager(entry_points=[], environ={})), pytest.raises(UnknownLayerError, match=r"^operator \+"):
        x + y
    assert (x + y).name.startswith("rack_add")


# append_op ------------------------------------------------------------------------------------------------------------
def test_append_op_infers_records_and_fills_defaults(programs):
    x = layers.data("x", [None, 3], lod_level=1)
    out = double(x)
    assert (out.shape, out.dtype, out.lod_level) == ((-1, 3), "float32", 1)
    y = LayerHelper("sum").apply("rack_add", {"X": out, "Y": x}, {"limit": x, "axis": None})
    op = programs[0].global_block().ops[-1]
    assert op.attr_types["limit"] is AttrType.VAR and op.attr("limit") == "x"
    assert op.attr("axis") == -1 and "tuning" not in op.attrs
    where, code = op.attr("op_callstack")[-2:]
    assert where.startswith('  File "') and where.endswith("in test_append_op_infers_records_and_fills_defaults")
    assert code == '    y = LayerHelper("sum").apply("rack_add", {"X": out, "Y": x}, {"limit": x, "axis": None})'
    assert y.shape == (-1, 3)


def test_the_line_is_the_users_through_several_functions(programs):
    def network(x):
        return double(x)

    network(layers.data("x", [1]))
    stack = programs[0].global_block().ops[0].attr("op_callstack")
    assert [line.rpartition(" in ")[2] for line in stack[::2]][-3:] == [
        "test_the_line_is_the_users_through_several_functions",
        "network",
        "double",
    ]


def test_a_failing_op_names_the_users_line_at_run_time(programs):
    main, _ = programs
    x = layers.data("x", [None, 3])
    y = LayerHelper("pick").apply("pick", {"Ids": layers.data("ids", [None], "int64"), "W": x})
    feed = {"x": np.ones((1, 3), np.float32), "ids": np.array([5])}
    with pytest.raises(oprack.errors.OpError, match=r'created by File ".*test_layers_core.py", line \d+.*: y = Layer'):
        oprack.Executor(prepared=False).run(main, feed=feed, fetch_list=[y])


BAD_OPS = [
    (("dubble", {}, {}), UnknownOpError, "did you mean double"),
    (("double", {"Y": "x"}, {"Out": "x"}), InvalidArgumentError, "op double has no input 'Y'; expected X"),
    (("double", {"X": "x"}, {"Output": "x"}), InvalidArgumentError, "has no output 'Output'; expected Out"),
    (("double", {}, {"Out": "x"}), InvalidArgumentError, r"input X is missing; expected a variable: Any tensor\."),
    (("double", {"X": ["x", "x"]}, {"Out": "x"}), InvalidArgumentError, "takes one variable; got 2"),
    (("double", {"X": 3}, {"Out": "x"}), InvalidArgumentError, r"input X is 3 \(int\); expected a Variable"),
    (("double", {"X": "y"}, {"Out": "x"}), NotFoundError, "variable 'y'"),
    (("double", {"X": "x"}, {"Out": "x"}, {"factr": 1.0}), InvalidArgumentError, "no attribute 'factr'.*factor"),
    (("double", {"X": "x"}, {"Out": "x"}, {"factor": -1.0}), AttributeValueError, "greater than 0"),
    (("pick", {"Ids": "x", "W": "x"}, {"Out": "x"}), InvalidArgumentError, "W has shape"),
]


@pytest.mark.parametrize(("arguments", "error", "text"), BAD_OPS)
def test_bad_op_names_the_line_and_leaves_the_block(programs, arguments, error, text):
    block = programs[0].global_block()
    layers.data("x", [None])
    with pytest.raises(error, match=text) as caught:
        append_op(*arguments)
    assert str(caught.value).count('\n  at File "') == 1 and ": append_op(*arguments)" in str(caught.value)
    assert block.ops == []


def test_variable_of_another_program_is_refused(programs):
    with oprack.program_guard(oprack.Program()):
        stranger = layers.data("x", [1])
    layers.data("x", [1])
    with pytest.raises(InvalidArgumentError, match="'x' of another program"):
        append_op("double", {"X": stranger}, {"Out": "x"})


# LayerHelper ----------------------------------------------------------------------------------------------------------
def test_helper_inputs(programs):
    x, y = layers.data("x", [1]), layers.data("y", [1], "float64")
    helper = LayerHelper("fc", input=[x, y], param_attr=["a", "b"])
    assert [v.name for v in helper.multiple_input()] == ["x", "y"]
    assert [(v.name, a) for v, a in helper.inputs_and_attrs()] == [("x", "a"), ("y", "b")]
    with pytest.raises(InvalidArgumentError, match=r"fc: input has dtypes \{'x': 'float32', 'y': 'float64'\}"):
        helper.input_dtype()
    with pytest.raises(InvalidArgumentError, match="2 variables in input but 1 in param_attr"):
        LayerHelper("fc", input=[x, y], param_attr=["a"]).inputs_and_attrs()
    with pytest.raises(InvalidArgumentError, match=r"fc: input is array\(\[1\.\]\) \(ndarray\); expected Variable"):
        LayerHelper("fc", input=np.ones(1)).input()


def test_helper_activation_and_bias(programs):
    x = layers.data("x", [None, 3, 4])
    helper = LayerHelper("fc", act={"type": "double", "factor": 3.0}, bias_attr="b")
    out = helper.append_activation(helper.append_bias_op(x, dim_start=1, dim_end=2))
    bias, act = programs[0].global_block().ops
    assert bias.attr("axis") == 1 and programs[0].global_block().vars["b"].shape == (3,)
    assert act.attr("factor") == 3.0 and out.shape == (-1, 3, 4)
    assert LayerHelper("fc", bias_attr=False).append_bias_op(x) is x
    assert LayerHelper("fc").append_activation(x) is x
    with pytest.raises(InvalidArgumentError, match="act is 3; expected the type of an activation op"):
        LayerHelper("fc", act=3).append_activation(x)


def test_checks_name_layer_and_argument(programs):
    x = layers.data("x", [1], "int32")
    assert layers.check_variable(x, "input", "fc", {"int32"}) is x
    with pytest.raises(InvalidArgumentError, match=r"fc: input \(variable 'x'\) is int32; expected float32 or float64"):
        layers.check_variable(x, "input", "fc", {"float32", "float64"})
    with pytest.raises(InvalidArgumentError, match=r"fc: size is 'a' \(str\); expected int or None"):
        layers.check_type("a", "size", "fc", (int, type(None)))
    assert layers.check_dtype(VarType.FP32, "dtype", "fc", {"float32"}) == "float32"
    with pytest.raises(InvalidArgumentError, match="fc: dtype is int8; expected float32"):
        layers.check_dtype("int8", "dtype", "fc", {"float32"})


def test_int_lists_may_hold_variables(programs):
    helper, n = LayerHelper("reshape"), layers.data("n", [1], "int32")
    known = layers.int_list(helper, (2, -1), "shape")
    assert known == ([2, -1], None, []) and known.known
    mixed = layers.int_list(helper, [n, 3], "shape")
    assert mixed.values == [-1, 3] and mixed.tensors[0] is n and not mixed.known
    assert programs[0].global_block().ops[0].attr("str_value") == "3"
    assert layers.int_list(helper, n, "shape").tensor is n
    with pytest.raises(InvalidArgumentError, match=r"reshape: shape is \[2\.5\]; expected a list of ints"):
        layers.int_list(helper, [2.5], "shape")


# Layers made from OpProtos --------------------------------------------------------------------------------------------
def test_layer_of_op(programs):
    layer = layers.layer_of_op("double", "twice", {"X": "input"})
    import inspect

    parameters = inspect.signature(layer).parameters.values()
    assert [(p.name, p.default) for p in parameters if p.name != "input"] == [
        ("factor", 2.0), ("act", None), ("name", None)]  # fmt: skip
    assert str(inspect.signature(layer)).startswith("(input: 'Variable', factor: 'float' = 2.0, ")
    assert layer.__name__ == "twice" and "factor: Factor." in layer.__doc__ and "the op double" in layer.__doc__
    x = layers.data("x", [None])
    assert layer(x, 3.0, act="double", name="n").name == "n.tmp_1"
    assert [op.attr("factor") for op in programs[0].global_block().ops] == [3.0, 2.0]
    with pytest.raises(TypeError, match=r"twice\(input, factor=2.0.*unexpected keyword argument 'factr'"):
        layer(x, factr=1.0)
    with pytest.raises(InvalidArgumentError, match="twice: input is 3"):
        layer(3)
    layers.layer_of_op("join")([x, x])
    assert programs[0].global_block().ops[-1].input("X") == ["x", "x"]


def test_dispensable_inputs_come_last(programs):
    import inspect

    layer = layers.layer_of_op("pick")
    assert list(inspect.signature(layer).parameters) == ["ids", "w", "scale", "act", "name"]
    out = layer(layers.data("ids", [None], "int64"), layers.data("w", [5, 3]))
    assert out.shape == (-1, 3) and programs[0].global_block().ops[0].input("Scale") == []


def test_generated_layers_of_a_module(programs):
    get = layers.generated_layers("double", other=("join", {"X": "parts"}))
    assert get("double") is get("double") and get("other").__name__ == "other"
    with pytest.raises(AttributeError, match="no layer 'relu' here; expected one of double, other"):
        get("relu")


# Namespaces -----------------------------------------------------------------------------------------------------------
def test_namespaces_hold_the_cores_own_names(rack):
    assert {"data", "program_guard", "LayerHelper"} <= set(dir(layers))
    assert dir(oprack.optimizer) == [] and layers.ParamAttr is oprack.ParamAttr
    assert oprack.initializer.Initializer is layers.variable.Initializer
    with pytest.raises(UnknownLayerError, match=r"oprack\.optimizer has no 'Adam'.*`pip install oprack-optimizer`"):
        oprack.optimizer.Adam  # noqa: B018
    assert not hasattr(layers, "fc") and not hasattr(layers, "__wrapped__")
