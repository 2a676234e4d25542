"""The settings of a predictor as a table for people, in the form of Paddle's Config.summary()."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

Row = tuple[str, str] | None
"""Name and value; None stands for a line across."""

_ALWAYS, _WHEN_SET = False, True
# (setting of Config, whether its row is left out unless it is set, name in the table) by groups with lines in between
_GROUPS = (
    (
        ("_model_dir", _WHEN_SET, "model_dir"),
        ("_prog_file", _WHEN_SET, "model_file"),
        ("_params_file", _ALWAYS, "params_file"),
        ("_buffers", _WHEN_SET, "model_from_memory"),
    ),
    (
        ("_threads", _ALWAYS, "cpu_math_thread"),
        ("_mkldnn", _ALWAYS, "enable_mkldnn"),
        ("_mkldnn_cache_capacity", _ALWAYS, "mkldnn_cache_capacity"),
        ("_bfloat16", _WHEN_SET, "bfloat16"),
        ("_bfloat16_ops", _WHEN_SET, "bfloat16_ops"),
        ("_int8", _WHEN_SET, "int8"),
        ("_int8_ops", _WHEN_SET, "int8_ops"),
    ),
    (
        ("_use_gpu", _ALWAYS, "use_gpu"),
        ("_gpu_device_id", _ALWAYS, "gpu_device_id"),
    ),
    (
        ("_ir_optim", _ALWAYS, "ir_optim"),
        ("_ir_debug", _ALWAYS, "ir_debug"),
        ("_strict_sums", _WHEN_SET, "strict_sums"),
        ("_deterministic", _WHEN_SET, "deterministic"),
        ("_library_attrs", _WHEN_SET, "library_attrs"),
        ("_passes", _WHEN_SET, "deleted_passes"),
        ("_optim_cache_dir", _WHEN_SET, "optim_cache_dir"),
        ("_memory_limit", _WHEN_SET, "memory_limit"),
        ("_loop_limit", _WHEN_SET, "loop_limit"),
        ("_memory_optim", _ALWAYS, "memory_optim"),
        ("_profile", _ALWAYS, "enable_profile"),
        ("_log", _ALWAYS, "enable_log"),
    ),
)


def settings_table(settings: Mapping[str, Any]) -> str:
    """The table.

    Args:
        settings: What a Config holds, by the names of its attributes.

    Returns:
        Lines of equal length.
    """
    rows: list[Row] = [("Option", "Value")]
    for group in _GROUPS:
        rows += [None, *_rows(settings, group)]
    left, right = (max(len(row[i]) for row in rows if row) for i in (0, 1))
    line = f"+-{'-' * left}-+-{'-' * right}-+"
    body = [line if row is None else f"| {row[0]:<{left}} | {row[1]:<{right}} |" for row in rows]
    return "\n".join([line, *body, line])


def _rows(settings: Mapping[str, Any], group: Iterable[tuple[str, bool, str]]) -> list[Row]:
    rows: list[Row] = []
    for attribute, when_set, name in group:
        text = _text(attribute, settings[attribute])
        unset = text in ("", "false", "None")
        if not (when_set and unset) and _applies(attribute, settings):
            rows.append((name, text))
    return rows


def _applies(attribute: str, settings: Mapping[str, Any]) -> bool:
    """Whether a setting means anything beside the others: a GPU's number without a GPU does not."""
    needs = {"_gpu_device_id": "_use_gpu", "_params_file": "_prog_file"}.get(attribute)
    return needs is None or bool(settings[needs])


def _text(attribute: str, value: Any) -> str:
    if attribute == "_threads":
        return str(value or "library's own")
    if attribute == "_buffers":
        return "true" if value else "false"
    if attribute == "_passes":
        return ", ".join(sorted(value.deleted))
    return str(value).lower() if isinstance(value, bool) else str(value)
