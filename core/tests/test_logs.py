"""Loggers of modules in processes that use `logging`, and in those that don't."""

from __future__ import annotations

import subprocess
import sys

SAID = """
import sys
from oprack.python.logs import get_logger
log = get_logger("oprack.somewhere")
log.warning("nobody listens, %s", 1)
print("logging" in sys.modules)
import logging
log.warning("no handler")
logging.basicConfig(stream=sys.stdout, level=logging.INFO, format="%(name)s %(message)s")
log.debug("too low")
log.info("%d of %s", 2, "them")
"""


def test_what_is_said_is_heard_by_who_asks_for_it() -> None:
    done = subprocess.run([sys.executable, "-c", SAID], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.splitlines() == ["False", "oprack.somewhere 2 of them"] and not done.stderr
