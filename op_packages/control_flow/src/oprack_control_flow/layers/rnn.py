"""Recurrent networks whose step is a block of layers: StaticRNN over dense tensors, DynamicRNN over sequences."""

from __future__ import annotations

from contextlib import contextmanager

from oprack.errors import InvalidArgumentError
from oprack.layers import LayerHelper, check_variable
from oprack.types import VarType, dtype_enum

from oprack_control_flow.layers import arrays
from oprack_control_flow.layers._blocks import inside
from oprack_control_flow.layers.loops import While, hand_over


class _RNN:
    """A While over time steps. Memories are variables outside, which the end of the step overwrites."""

    def __init__(self, name=None):
        self._helper = LayerHelper(self.kind, name=name)
        self._program = self._helper.main_program
        self._parent = None
        self._memories = {}  # name inside the step -> (variable outside, its new value)
        self._outputs = []
        self._results = None
        self._building = False
        self._steps = None

    @contextmanager
    def _block(self):
        if self._parent is not None:
            raise InvalidArgumentError(f"{self._helper.layer_type}: the step is built already; make another one")
        self._parent = self._program.current_block()
        self._zero, self._step = self._integer(0), self._integer(0)
        self._cond = self._helper.create_variable(dtype="bool", shape=[1], stop_gradient=True)
        self._building = True
        try:
            with While(self._cond).block():
                yield self
                self._finish_step()
        finally:
            self._building = False
        self._results = [self._result(array, inner) for array, inner in self._outputs]

    def _finish_step(self):
        kind = self._helper.layer_type
        if self._steps is None or not self._outputs:
            raise InvalidArgumentError(f"{kind}: the step has no step_input or no output; expected one of each or more")
        missing = [name for name, (_, new) in self._memories.items() if new is None]
        if missing:
            raise InvalidArgumentError(
                f"{kind}: memory {', '.join(missing)} is not updated; call update_memory for each"
            )
        pairs = list(self._memories.values())
        hand_over(self._helper, [new for _, new in pairs], [outside for outside, _ in pairs])
        self._helper.apply("increment", {"X": self._step}, {"step": 1.0}, outs={"Out": self._step})
        self._compare()

    def _compare(self):
        self._helper.apply("less_than", {"X": self._step, "Y": self._steps}, outs={"Out": self._cond})

    def _integer(self, value):
        attrs = {"shape": [1], "dtype": int(VarType.INT64), "value": float(value), "str_value": str(value)}
        return self._helper.apply("fill_constant", {}, attrs, stop_gradient=True)

    def _outside(self):
        if not self._building:
            raise InvalidArgumentError(f"{self._helper.layer_type}: call this inside the step's with block")
        return inside(self._program, self._parent)

    def _outer(self, value, argument):
        """A Variable that was made before the step. Raises InvalidArgumentError."""
        kind = self._helper.layer_type
        check_variable(value, argument, kind)
        if self._parent is not None and self._parent.find_var_recursive(value.name) is not value.desc:
            raise InvalidArgumentError(
                f"{kind}: {argument} is variable {value.name!r}, which the step makes itself; expected one made "
                "before the with block"
            )
        return value

    def _remember(self, outside, seen):
        self._memories[seen.name] = (outside, None)
        return seen

    def update_memory(self, ex_mem, new_mem):
        """`new_mem` is what memory `ex_mem` holds in the next step."""
        check_variable(ex_mem, "ex_mem", self._helper.layer_type)
        check_variable(new_mem, "new_mem", self._helper.layer_type)
        if ex_mem.name not in self._memories:
            raise InvalidArgumentError(
                f"{self._helper.layer_type}: {ex_mem.name!r} is no memory of this step; expected what memory() returned"
            )
        self._memories[ex_mem.name] = (self._memories[ex_mem.name][0], new_mem)

    def output(self, *outputs):
        """Variables of the step whose values of all steps are the results."""
        for var in outputs:
            check_variable(var, "outputs", self._helper.layer_type)
            with self._outside():
                array = arrays.create_array(var.dtype)
            arrays.array_write(var, self._step, array)
            self._outputs.append((array, var))

    def __call__(self):
        """The outputs of all steps: a Variable, or a list of them when there are several."""
        if self._results is None:
            raise InvalidArgumentError(f"{self._helper.layer_type}: build the step first, in its with block")
        return self._results[0] if len(self._results) == 1 else list(self._results)


class StaticRNN(_RNN):
    """Runs a step for each place along the first dim of its inputs, [steps, batch, ...].

        rnn = layers.StaticRNN()
        with rnn.step():
            word = rnn.step_input(x)
            before = rnn.memory(shape=[-1, 64], batch_ref=word)
            hidden = layers.fc([word, before], 64, act="tanh")
            rnn.update_memory(before, hidden)
            rnn.step_output(hidden)
        out = rnn()                                             # [steps, batch, 64]

    Ops while, slice, write_to_array, tensor_array_to_tensor and others. Raises InvalidArgumentError.
    """

    kind = "static_rnn"

    def __init__(self, name=None):
        super().__init__(name)
        self._inputs = {}
        self._count = -1

    def step(self):
        """Layers go into the step inside this with block."""
        return self._block()

    def step_input(self, x):
        """Place t of x, [steps, ...], in step t."""
        self._outer(x, "x")
        if not x.shape or (self._count > 0 and x.shape[0] not in (-1, self._count)):
            raise InvalidArgumentError(
                f"StaticRNN.step_input: x has shape {list(x.shape)}; expected [steps, ...], with the "
                f"{self._count if self._count > 0 else ''} steps of the other inputs"
            )
        self._count = max(self._count, x.shape[0])
        if self._steps is None:
            with self._outside():
                self._steps = self._integer(x.shape[0]) if x.shape[0] > 0 else self._length(x)
                self._compare()
        seen = x[self._step]
        self._inputs[seen.name] = x
        return seen

    def _length(self, x):
        shape = self._helper.apply("shape", {"Input": x}, stop_gradient=True)
        attrs = {"axes": [0], "starts": [0], "ends": [1]}
        first = self._helper.apply("slice", {"Input": shape}, attrs, stop_gradient=True)
        attrs = {"in_dtype": int(VarType.INT32), "out_dtype": int(VarType.INT64)}
        return self._helper.apply("cast", {"X": first}, attrs, stop_gradient=True)

    def memory(self, init=None, shape=None, batch_ref=None, init_value=0.0, init_batch_dim_idx=0, ref_batch_dim_idx=1):
        """What update_memory stored in the step before; in the first step `init`, or `init_value` in a given shape.

        shape: dim init_batch_dim_idx is taken from dim ref_batch_dim_idx of the whole input that batch_ref (what
        step_input returned, or a variable from outside) is a step of.
        """
        with self._outside():
            if init is not None:
                start = self._outer(init, "init")
            else:
                if shape is None or batch_ref is None:
                    raise InvalidArgumentError("StaticRNN.memory: expected init, or shape and batch_ref")
                whole = self._inputs.get(check_variable(batch_ref, "batch_ref", "StaticRNN.memory").name, batch_ref)
                start = _filled(
                    self._helper, whole, shape, batch_ref.dtype, init_value, ref_batch_dim_idx, init_batch_dim_idx
                )
            outside = self._helper.apply("assign", {"X": start})
        return self._remember(outside, outside)

    def step_output(self, o):
        """A variable of the step whose values of all steps are a result, [steps, ...]."""
        self.output(o)

    def _result(self, array, inner):
        out, _ = arrays.tensor_array_to_tensor(array, axis=0, use_stack=True)
        out.desc.shape = (self._count, *inner.shape)
        return out


class DynamicRNN(_RNN):
    """Runs a step for each place of the longest sequence, over those sequences that are that long.

        rnn = layers.DynamicRNN()
        with rnn.block():
            word = rnn.step_input(sentences)                    # row t of each sequence
            before = rnn.memory(shape=[64])
            hidden = layers.fc([word, before], 64, act="tanh")
            rnn.update_memory(before, hidden)
            rnn.output(hidden)
        out = rnn()                                             # [rows, 64], LoD of sentences

    In a step, rows are the sequences, longest first. Ops while, lod_rank_table, lod_tensor_to_array, shrink_rnn_memory,
    array_to_lod_tensor and others. Raises InvalidArgumentError.
    """

    kind = "dynamic_rnn"

    def __init__(self, name=None):
        super().__init__(name)
        self._table = None
        self._first = None

    def block(self):
        """Layers go into the step inside this with block."""
        return self._block()

    def step_input(self, x, level=0):
        """Row t (or sub-sequence t) of each sequence of x that is long enough; all inputs have the same lengths."""
        self._outer(x, "x")
        if x.lod_level < 1:
            raise InvalidArgumentError(
                f"DynamicRNN.step_input: x (variable {x.name!r}) has no LoD; expected sequences, such as "
                "layers.data(..., lod_level=1)"
            )
        with self._outside():
            if self._table is None:
                self._table = arrays.lod_rank_table(x, level)
                self._steps = arrays.max_sequence_len(self._table)
                self._compare()
            array = arrays.lod_tensor_to_array(x, self._table)
            if self._first is None:
                self._first = array
        return arrays.array_read(array, self._step)

    def static_input(self, x):
        """All of x in each step, a sequence (or row) for each sequence that is long enough, in the step's order."""
        self._require_input("static_input")
        self._outer(x, "x")
        with self._outside():
            ordered = arrays.reorder_lod_tensor_by_rank(x, self._table)
        return arrays.shrink_memory(ordered, self._step, self._table)

    def memory(self, init=None, shape=None, value=0.0, need_reorder=False, dtype="float32"):
        """What update_memory stored in the step before; in the first step `init`, or `value` in `shape` (of a row).

        init: a row for each sequence; need_reorder: in the order of the sequences, not longest first.
        """
        self._require_input("memory")
        with self._outside():
            if init is not None:
                start = self._outer(init, "init")
                if need_reorder:
                    start = arrays.reorder_lod_tensor_by_rank(start, self._table)
            elif shape is not None:
                rows = arrays.array_read(self._first, self._zero)
                start = _filled(self._helper, rows, [-1, *shape], dtype, value, 0, 0)
            else:
                raise InvalidArgumentError("DynamicRNN.memory: expected init or shape")
            outside = self._helper.apply("assign", {"X": start})
        return self._remember(outside, arrays.shrink_memory(outside, self._step, self._table))

    def _require_input(self, what):
        if self._table is None:
            raise InvalidArgumentError(
                f"DynamicRNN.{what}: expected a step_input before it, which says how many sequences"
            )

    def _result(self, array, inner):
        out = arrays.array_to_lod_tensor(array, self._table)
        out.desc.shape = (-1, *inner.shape[1:])
        return out


def _filled(helper, like, shape, dtype, value, input_dim, output_dim):
    attrs = {
        "shape": list(shape),
        "dtype": int(dtype_enum(dtype)),
        "value": float(value),
        "input_dim_idx": input_dim,
        "output_dim_idx": output_dim,
    }
    return helper.apply("fill_constant_batch_size_like", {"Input": like}, attrs)
