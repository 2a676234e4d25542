"""The run itself: what it prints and checks, where it may go, what it drops."""

from __future__ import annotations

import sys
from typing import Any

from oprack.python.text import printable
from oprack.python.threads import cpus
from oprack.runtime import OperatorBase, RunContext
from oprack.tensor import CPUPlace, CUDAPlace, LoDTensor, Scope

from oprack_control_flow.steps import host_array, reference


# Operator of delete_var.
class DeleteVarOp(OperatorBase):
    op_type = "delete_var"

    def run_impl(self, scope: Scope, run: RunContext) -> None:
        for name in self.inputs.get("X", ()):
            var = scope.find_var(name)
            if var is not None:
                var.clear()


# Operator of get_places.
class GetPlacesOp(OperatorBase):
    op_type = "get_places"

    def run_impl(self, scope: Scope, run: RunContext) -> None:
        wanted, count = self.attrs["device_type"], self.attrs["device_count"]
        on_cpu = wanted == "CPU" or (wanted == "AUTO" and run.place.kind == "cpu")
        if on_cpu:
            places = [CPUPlace()] * (count or cpus())
        else:
            places = [CUDAPlace(i) for i in range(count or 1)]
        self.set_output(scope, self.output("Out"), places)


# print.
class PrintOp(OperatorBase):
    """Counts its prints for as long as the prepared program lives."""

    op_type = "print"

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._printed = 0

    def run_impl(self, scope: Scope, run: RunContext) -> None:
        name = self.input("In")
        value = self.get_input(scope, name)
        phase = "FORWARD" if self.attrs["is_forward"] else "BACKWARD"
        first_n = self.attrs["first_n"]
        if self.attrs["print_phase"] in (phase, "BOTH") and (first_n < 0 or self._printed < first_n):
            self._printed += 1
            sys.stdout.write(self._text(name, value))
        if "Out" in self.outputs:
            self.set_output(scope, self.output("Out"), reference(value))

    def _text(self, name: str, tensor: LoDTensor) -> str:
        attrs, count = self.attrs, self.attrs["summarize"]
        data = host_array(tensor).reshape(-1)[: count if count >= 0 else None].tolist()
        lines = [
            ("Variable", attrs["print_tensor_name"], name),
            ("lod", attrs["print_tensor_lod"] and bool(tensor.lod), tensor.lod),
            ("shape", attrs["print_tensor_shape"], list(tensor.shape)),
            ("layout", attrs["print_tensor_layout"], "any"),
            ("dtype", attrs["print_tensor_type"], tensor.dtype),
            ("data", True, data),
        ]
        # The message and the name are the model's, which must not steer the terminal, nor forge lines in a log.
        head = f"{_in_one_line(attrs['message'])}\n" if attrs["message"] else ""
        return head + "".join(f"  {what}: {_in_one_line(str(text))}\n" for what, shown, text in lines if shown)


def _in_one_line(text: str) -> str:
    return printable(text).replace("\n", "\\n")
