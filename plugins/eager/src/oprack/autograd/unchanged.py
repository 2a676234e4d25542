"""What gradients read of a recorded call must be as it was then: errors where it was changed in place since."""

from __future__ import annotations

from collections.abc import Iterable

from oprack.eager_tensor import Node, Tensor
from oprack.errors import PreconditionNotMetError


def check_inputs(name: str, versions: Iterable[tuple[Tensor, int]]) -> None:
    """Raise PreconditionNotMetError if a tensor that was given to a call was changed.

    Args:
        name: Name of the call, for the message.
        versions: Tensors, with the versions that they had.
    """
    for x, version in versions:
        if x._version != version:
            raise overwritten(name, f"input {x.describe()}", x._written_by)


def check_outputs(node: Node, outputs: Iterable[int]) -> None:
    """Raise PreconditionNotMetError if an output of a call was changed.

    Args:
        node: The recorded call.
        outputs: Numbers of the outputs that its gradients read.
    """
    if node.lent:
        for i in outputs:
            if (writer := node.overwriter(i)) is not None:
                raise overwritten(node.name, f"output {i}", writer)


def overwritten(name: str, what: str, by: str) -> PreconditionNotMetError:
    """The error where something was changed.

    Args:
        name: Name of the call.
        what: Which of its inputs or outputs.
        by: The op that changed it.
    """
    return PreconditionNotMetError(
        f"the gradient of {name} needs its {what}, which was changed in place since by {by}; use the operation that "
        "makes a new tensor, change it after backward(), or change a copy (x.clone())"
    )
