"""Groups of parameters, each with settings of its own."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from oprack.errors import InvalidArgumentError, did_you_mean
from oprack.names.spellings import keywords_instead

from oprack_optimizer.regularizer import L2Decay


def split_groups(given: Any) -> tuple[Any, list[tuple[list[Any], dict[str, Any]]]]:
    """(parameters of all groups in order, what is special about which of them).

    Args:
        given: Parameters, or dicts such as {"params": [...], "learning_rate": 0.1, "weight_decay": 0.0}.
    """
    if not isinstance(given, list | tuple) or not any(isinstance(group, dict) for group in given):
        return given, []
    items: list[Any] = []
    groups = []
    for group in given:
        if not isinstance(group, dict) or "params" not in group:
            raise InvalidArgumentError(
                f"parameters: a group is {str(group)[:60]}; expected dicts such as "
                '{"params": net.parameters(), "learning_rate": 0.1}, or parameters alone'
            )
        params = list(group["params"]) if isinstance(group["params"], Iterable) else [group["params"]]
        items += params
        groups.append((params, {k: v for k, v in group.items() if k != "params"}))
    return items, groups


def settings_of(owner: Any, name: str, groups: Sequence[tuple[list[Any], dict[str, Any]]]) -> dict[str, Any]:
    """What is special about a parameter: attributes of the optimizer, and "learning_rate", a factor.

    Raises:
        InvalidArgumentError: Its group has a setting that the optimizer has not.
    """
    settings = next((s for params, s in groups if any(_name(p) == name for p in params)), {})
    known = {n for n in vars(owner) if not n.startswith("_")} - {"parameter_list", "name"}
    found = {}
    for key, value in settings.items():
        if key == "weight_decay" and key not in known:  # AdamW has it; for others it is another name
            key = "regularization"
        if key == "regularization" and isinstance(value, int | float) and not isinstance(value, bool):
            value = L2Decay(value)
        if key not in known and key != "learning_rate":
            every = sorted({*known, "learning_rate", "weight_decay"})
            raise InvalidArgumentError(
                f"{type(owner).__name__}: a group of parameters has {key!r}{did_you_mean(key, every)}"
                f"{keywords_instead(every, {key: value})}; expected some of {', '.join(every)}; learning_rate is a "
                "factor on that of the optimizer"
            )
        found[key] = value
    return found


def _name(parameter: Any) -> Any:
    parameter = parameter[1] if isinstance(parameter, tuple) else parameter
    return parameter if isinstance(parameter, str) else parameter.name
