"""docs/paddle.md, from the table of names and the scores of suites in plugins/paddle; run this file to write it."""

from __future__ import annotations

import tomllib
from pathlib import Path

from oprack.names import paddle

ROOT = Path(__file__).parents[2]
PLUGIN = ROOT / "plugins" / "paddle"
PAGE = ROOT / "docs" / "paddle.md"

HEAD = """\
# import paddle, without Paddle

The plugin [paddle](../plugins/paddle) serves the namespace of Paddle 2.6.2: `python -m oprack_paddle train.py` and
`oprack exec COMMAND` run programs that say `import paddle`, unedited. This page says how much of Paddle is there. It is
made by `python docs/site/paddle_page.py` from the table of names and from the scores of suites that others wrote.

"""


def page() -> str:
    """The text of the page."""
    names, lacking = list(paddle.signatures()), paddle.missing()
    text = HEAD + f"## Names\n\n{len(names) - len(lacking)} of the {len(names)} public names are served.\n\n"
    text += "| module | names | missing |\n| --- | --- | --- |\n"
    spaces = sorted({n.rpartition(".")[0] for n in names})
    for space in spaces:
        inside = [n for n in names if n.rpartition(".")[0] == space]
        text += f"| `paddle{'.' * bool(space)}{space}` | {len(inside)} | {sum(n in lacking for n in inside) or ''} |\n"
    text += "\n## Names that are missing, and why\n\n| why | names |\n| --- | --- |\n"
    for row in paddle.table()["missing"]:
        text += f"| {row['why']} | {', '.join(f'`{n}`' for n in row['names'].split())} |\n"
    text += "\n## Suites that others wrote\n\n"
    for suite in tomllib.loads((PLUGIN / "tests" / "scores.toml").read_text(encoding="utf-8"))["suite"]:
        share = 100 * suite["agree"] / suite["calls"]
        text += (
            f"{suite['name']}: of {suite['calls']:,} calls of {suite['functions']} functions that Paddle 2.6.2 can do, "
        )
        text += f"{suite['agree']:,} agree in values, shapes and dtypes ({share:.1f} %). What is left:\n\n"
        text += "| calls | why |\n| --- | --- |\n"
        text += "".join(f"| {left['what']} | {left['why']} |\n" for left in suite["left"])
    return text + _op_tests()


def _op_tests() -> str:
    """The part on Paddle's own tests of ops, from what tests/suites/optest.py wrote."""
    found = tomllib.loads((PLUGIN / "tests" / "optest.toml").read_text(encoding="utf-8"))
    text = (
        "\nTests of ops that PaddleCustomDevice brings for devices (commit 77090b64; npu, mlu and custom_cpu), run "
        "unedited by `python tests/suites/optest.py FOLDER ...` with NumPy's values as the files have them. `import "
        "paddle` is this plugin, every device is the CPU, and a stand-in for `op_test` compares values as Paddle's "
        "does. `plugins/paddle/tests/optest.toml` has the files behind each row.\n"
    )
    for suite in found["suite"]:
        share = 100 * suite["passes"] / suite["methods"]
        text += f"\nOf {suite['methods']:,} methods of {suite['name']}, in {suite['files']} files, "
        text += f"{suite['passes']:,} pass ({share:.1f} %). What is left:\n\n| methods | why |\n| --- | --- |\n"
        text += "".join(f"| {left['methods']} | {left['why']} |\n" for left in suite["left"])
    broken = found["files_that_do_not_load"]
    text += f"\n{sum(broken.values())} files do not load: "
    return text + "; ".join(f"{count} need {why}" for why, count in broken.items()) + ".\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
