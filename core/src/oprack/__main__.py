"""`python -m oprack`, the same as `oprack`."""

from __future__ import annotations

import sys

from oprack.cli.main import main

sys.exit(main())
