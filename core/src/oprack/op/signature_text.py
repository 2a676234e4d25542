"""Docstrings and stubs of functions that are made from OpProtos: pieces of text."""

from __future__ import annotations

from typing import Any

_WIDTH = 108


def sentence(text: str) -> str:
    """A text in one line that ends like a sentence."""
    line = " ".join(text.split())
    return line if not line or line[-1] in ".!?$" else f"{line}."


def indented(line: str) -> str:
    """A line of a section."""
    return f"    {line}"


def entry(text: str) -> list[str]:
    """Lines of an entry of a section, cut between words; textwrap takes longer than all the rest of a function."""
    lines, indent = [], "    "
    while len(text) > _WIDTH:
        cut = text.rfind(" ", 0, _WIDTH)
        if cut < 0:
            break
        lines.append(indent + text[:cut])
        text, indent = text[cut + 1 :], "        "
    return [*lines, indent + text]


def default(value: Any) -> str:
    """A default as a stub has it."""
    return f" = {value!r}" if value is None or isinstance(value, bool | int | str) else " = ..."


def stub_docstring(doc: str) -> str:
    """A docstring as a stub has it.

    Args:
        doc: The text.

    Returns:
        Its source, indented as the body of a function.
    """
    lines = doc.replace("\\", "\\\\").replace('"""', "'''").rstrip().splitlines() or [""]
    return "\n".join([f'    """{lines[0]}', *(f"    {line}".rstrip() for line in lines[1:]), '    """'])
