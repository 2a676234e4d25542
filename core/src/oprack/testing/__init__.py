"""For pack authors: the conformance suite, op cases, and the pytest plugin (fixtures without discovery)."""

from oprack.testing.cases import Expected, FileCase, compare, load_cases
from oprack.testing.conformance import Conformance, Limitation
from oprack.testing.op_case import OpCase
from oprack.testing.op_test import OpTest
from oprack.testing.passes import PassCase, check_passes
from oprack.testing.runner import check_case, missing_ops, run_case

__all__ = [
    "Conformance",
    "Expected",
    "FileCase",
    "Limitation",
    "OpCase",
    "OpTest",
    "PassCase",
    "check_case",
    "check_passes",
    "compare",
    "load_cases",
    "missing_ops",
    "run_case",
]
