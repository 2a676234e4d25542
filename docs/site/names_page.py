"""docs/names.md, from the tables of names and what each line of tests/data/names.toml does; running this writes it."""

from __future__ import annotations

import contextlib
import copy
import io
import os
import tempfile
import tomllib
import warnings
from functools import cache
from pathlib import Path
from typing import Any

from oprack.names import paddle

ROOT = Path(__file__).parents[2]
DATA = ROOT / "tests" / "data" / "names.toml"
PAGE = ROOT / "docs" / "names.md"

HEAD = """\
# Names that people type

What users of PyTorch, Paddle and NumPy type in their first hour, and what becomes of it. This page is made from
`tests/data/names.toml` by `python docs/site/names_page.py`; a test runs every line, and what an error proposes.

Where the libraries differ, Paddle 2's spelling is the reference. What PyTorch or NumPy spell otherwise and mean alike
runs as well (`oprack.cat`, `x.sum(dim=1)`, `import oprack.optim`); what they mean otherwise raises an error that says
what to write. `spellings.toml` in `plugins/names/src/oprack/names` is the table of both; Paddle's own names, and where
they lead, are in `paddle_names.toml` beside it, by which [import paddle](paddle.md) works, too. The lines below follow:

```python
{setup}
```

## Names with two meanings

| name | what it means here |
| --- | --- |
"""

MEANINGS = {
    "`oprack.functional.<name>`": (
        "The op of that type, with its inputs in order and its attributes as keywords; where there is no such "
        "op, the function of `oprack.nn.functional`."
    ),
    "`oprack.nn.functional.<name>`, `oprack.<name>`": ("Paddle 2's function: its arguments, and its meaning."),
    "`x.<name>(...)`": ("The same function, with `x` as its first argument."),
    "`F.cross_entropy`": (
        "Fluid's op, on probabilities; logits are an error as soon as one is no probability. "
        "`nn.functional.cross_entropy` and `nn.CrossEntropyLoss` take logits."
    ),
    "`F.dropout`": (
        "Fluid's op, which by default scales when it does not drop. `nn.functional.dropout` and `nn.Dropout` "
        "scale in training, as Paddle 2 and PyTorch do."
    ),
    "`F.smooth_l1_loss`, `F.norm`, `F.pad`, `F.gather` ...": (
        "Ops, whose arguments are those of Fluid; `help(F.pad)` says which."
    ),
    "`x.transpose(0, 1)`": (
        "Of a matrix an error, since PyTorch swaps the dims and NumPy keeps them; `x.T` swaps, a list is an order."
    ),
    "`x.norm()`": ("The norm of all elements, as in Paddle 2; the op norm, which divides by it, is `F.norm`."),
    "`x.argmax()`, `x.argmin()`": ("The place among all elements, as in Paddle 2, PyTorch and NumPy."),
    "`x.argsort()`, `x.unique()`": (
        "A tensor of places, and the different elements, as in Paddle 2; `F.argsort` and `F.unique` give all "
        "outputs of the op."
    ),
    "`x.std()`, `x.var()`": (
        "With n - 1, as Paddle 2 and PyTorch have it; `unbiased=False` divides by n, as NumPy does."
    ),
    "`nn.CrossEntropyLoss(ignore_index=k)`": (
        "Examples with the label k count neither in the sum nor in the mean; the default -100 stands for none."
    ),
    '`{"params": ..., "learning_rate": 0.1}`': (
        "In a group of parameters the learning rate is a factor on the optimizer's, as in Paddle 2."
    ),
}


_CHANGED = ("x", "y", "w", "net", "img")  # a line may write into them, and the next one starts afresh


@cache
def _prepared(setup: str) -> dict[str, Any]:
    names: dict[str, Any] = {}
    exec(setup, names)
    return names


def outcome(line: str, setup: str) -> str:
    """Run a line after the setup, in an empty folder.

    Returns:
        "" when it runs, else the class and the first line of the error.
    """
    names = {name: copy.deepcopy(v) if name in _CHANGED else v for name, v in _prepared(setup).items()}
    before = os.getcwd()
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        os.chdir(folder)
        try:
            if ".load(" in line:
                exec('oprack.save({"epoch": 3}, "a.npz")', names)
            exec(line, names)  # of the project's own data file
        except Exception as error:
            return f"{type(error).__name__}: {str(error).splitlines()[0]}"
        finally:
            os.chdir(before)
    return ""


def page() -> str:
    """The text of docs/names.md."""
    data = tomllib.loads(DATA.read_text(encoding="utf-8"))
    parts = [HEAD.format(setup=data["setup"].strip()).rstrip()]
    parts += [f"| {name} | {meaning} |" for name, meaning in MEANINGS.items()]
    for group in data["group"]:
        parts.append(f"\n## {group['title']}\n\nThese run:\n\n```python")
        parts += group["works"]
        parts.append("```\n")
        said = [(line, outcome(line, data["setup"])) for line in group.get("says", ())]
        if said:
            parts += ["| instead of | write, or read |", "| --- | --- |"]
            parts += [f"| {_code(line)} | {_advice(found)} |" for line, found in said]
        if group.get("machine"):
            parts.append(f"\nWith a GPU and the plugin oprack-cuda: {', '.join(map(_code, group['machine']))}.")
        if group.get("refused"):
            parts.append(f"\nWrong for these values, and refused: {', '.join(map(_code, group['refused']))}.")
    return "\n".join([*parts, *_names_of_paddle()]).rstrip() + "\n"


def _names_of_paddle() -> list[str]:
    """What becomes of Paddle's names that oprack's namespaces lead on, by its table."""
    rows = ["## Paddle's modules\n"]
    rows += [
        "Names that are elsewhere in oprack are found where Paddle has them, too. The plugin paddle serves the rest.\n"
    ]
    rows += ["| in | names |", "| --- | --- |"]
    for space, row in paddle.table()["modules"].items():
        if found := row.get("without_plugin"):
            names = [f"all of `{row['same'][0]}`"] if found == "*" else [f"`{name}`" for name in found.split()]
            rows.append(f"| `{f'oprack.{space}'.rstrip('.')}` | {', '.join(names)} |")
    return rows


def _advice(found: str) -> str:
    """What an error proposes: a line of code, or its words from the first semicolon on."""
    _, wrote, line = found.partition("; write ")
    if wrote:
        return _code(line)
    text = found.partition(": ")[2]
    return (text.partition("; ")[2] or text.partition(": ")[2] or text).replace("|", "\\|")


def _code(line: str) -> str:
    return "`" + line.replace("|", "\\|") + "`"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
