"""Write the op reference from what is installed: one page a pack, one section an op, and an index.

    python docs/op_reference.py [--out out/docs/ops]

The text comes from the definitions themselves: their docstrings, slots, attributes and kernels.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from pathlib import Path
from typing import Any

from oprack import default_manager
from oprack.cli.op import describe

ROOT = Path(__file__).resolve().parents[1]


def slots(title: str, entries: list[dict[str, Any]]) -> list[str]:
    """A list of inputs or outputs; nothing when there are none."""
    lines = []
    for entry in entries:
        flags = f" ({', '.join(entry['flags'])})" if entry["flags"] else ""
        lines.append(f"- `{entry['name']}`{flags}: {entry['doc']}".rstrip(": "))
    return [f"**{title}**", "", *lines, ""] if lines else []


def attributes(entries: list[dict[str, Any]]) -> list[str]:
    """A list of attributes with types, defaults and checks; Paddle's tuning attributes are left out."""
    lines = []
    for entry in entries:
        if "extra" in entry["flags"]:
            continue
        default = "required" if "required" in entry["flags"] else f"default `{entry['default']!r}`"
        checks = f" Expected: {', and '.join(entry['checks'])}." if entry["checks"] else ""
        lines.append(f"- `{entry['name']}` ({entry['type']}, {default}): {entry['doc']}{checks}")
    return ["**Attributes**", "", *lines, ""] if lines else []


def kernel_line(kernel: dict[str, Any], pack: str) -> str:
    """Place and dtypes of a kernel; its library and pack where they are not the plain ones."""
    library = "" if kernel["library"] == "plain" else f", {kernel['library']}"
    owner = "" if kernel["owner"] == pack else f" ({kernel['owner']})"
    return f"{kernel['place']}{library}{owner}: {', '.join(kernel['dtypes'])}"


def section(facts: dict[str, Any]) -> list[str]:
    """One op as Markdown."""
    lines = [f"## {facts['op']}", ""]
    if facts["doc"]:
        lines += [facts["doc"], ""]
    lines += slots("Inputs", facts["inputs"]) + slots("Outputs", facts["outputs"]) + attributes(facts["attrs"])
    found = sorted({kernel_line(kernel, facts["pack"]) for kernel in facts["kernels"]})
    if found:
        lines += ["**Kernels**", "", *(f"- {line}" for line in found), ""]
    if facts["gradient"]["ops"]:
        lines += ["**Gradient**: " + ", ".join(f"`{op}`" for op in facts["gradient"]["ops"]), ""]
    return lines


def write(out: Path) -> tuple[int, int]:
    """Write all pages below `out` and return how many ops and packs there are."""
    manager = default_manager()
    pages: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for op_type in sorted(manager.op_types()):
        facts = describe(manager, op_type)
        pages[facts["pack"]].append(facts)
    out.mkdir(parents=True, exist_ok=True)
    index = ["# Operators", ""]
    for pack, ops in sorted(pages.items()):
        lines = [f"# {pack}", "", *(line for facts in ops for line in section(facts))]
        (out / f"{pack}.md").write_text("\n".join(lines), "utf-8")
        index += [f"## [{pack}]({pack}.md)", "", ", ".join(f"[{f['op']}]({pack}.md#{f['op']})" for f in ops), ""]
    (out / "index.md").write_text("\n".join(index), "utf-8")
    return sum(map(len, pages.values())), len(pages)


def main() -> None:
    """Command line: write the reference and say how large it is."""
    parser = argparse.ArgumentParser(description="Write the op reference as Markdown.")
    parser.add_argument("--out", type=Path, default=ROOT / "out" / "docs" / "ops")
    options = parser.parse_args()
    ops, packs = write(options.out)
    print(f"{options.out}: {ops} ops of {packs} packs")


if __name__ == "__main__":
    main()
