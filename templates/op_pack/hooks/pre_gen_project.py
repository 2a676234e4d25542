"""Refuses answers that would make a pack that can't work, before any file is written."""

import keyword
import re
import sys

ANSWERS = {
    "pack_name": "{{ cookiecutter.pack_name }}",
    "first_op": "{{ cookiecutter.first_op }}",
}
TEXTS = {
    "description": {{ cookiecutter.description|jsonify }},
    "author": {{ cookiecutter.author|jsonify }},
    "email": {{ cookiecutter.email|jsonify }},
}
RESERVED = {
    "amp",
    "array_api",
    "clusters",
    "collective",
    "control_flow",
    "core",
    "cuda",
    "detection",
    "eager",
    "fft",
    "fused",
    "graph",
    "inference",
    "ir",
    "jax",
    "linalg",
    "math",
    "metric",
    "mpi",
    "names",
    "nn",
    "numba",
    "onednn",
    "onnx",
    "onnxruntime",
    "onnx_ops",
    "optimizer",
    "paddle",
    "parallel",
    "pir",
    "quantization",
    "random",
    "selected_rows",
    "sequence",
    "serve",
    "sparse",
    "tensor",
    "testing",
    "torch",
    "ui",
}

WORDS = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*")
problems = []
for name, value in ANSWERS.items():
    if not WORDS.fullmatch(value) or keyword.iskeyword(value):
        problems.append(f"{name} is {value!r}; expected lower-case words joined by _, such as 'my_pack'")
for name, text in TEXTS.items():
    if not text.isprintable() or '"' in text or "\\" in text:
        problems.append(f"{name} is {text!r}; expected one line without quotation marks and backslashes")
if ANSWERS["pack_name"] in RESERVED:
    problems.append(f"pack_name is {ANSWERS['pack_name']!r}, which is a pack of oprack itself; choose another one")
if ANSWERS["first_op"].endswith("_grad"):
    problems.append(f"first_op is {ANSWERS['first_op']!r}; names that end in _grad are gradient ops, which come with their op")
try:
    from oprack.packs import default_manager
except ImportError:  # cookiecutter runs the template without oprack
    pass
else:
    if default_manager().has_op(ANSWERS["first_op"]):
        problems.append(
            f"first_op is {ANSWERS['first_op']!r}, which is an op of {default_manager().owner(ANSWERS['first_op'])}; choose "
            "another name. A kernel of that op may come from any pack: see docs/writing_ops.md, 'A kernel for an op of others'"
        )
if problems:
    print("oprack new-pack: nothing was written:\n  " + "\n  ".join(problems), file=sys.stderr)
    sys.exit(1)
