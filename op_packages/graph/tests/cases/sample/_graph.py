"""A graph of four nodes: 0 has neighbours 1, 2 and 3, 1 has 0, 2 has none, 3 has 2 and 0."""

from __future__ import annotations

import numpy as np

ROW, STARTS = np.array([1, 2, 3, 0, 2, 0]), np.array([0, 3, 4, 4, 6])
EDGES, NODES = np.arange(10, 16), np.array([3, 2, 0])
ALL = np.array([2, 0, 1, 2, 3]), np.array([2, 0, 3], np.int32), np.array([14, 15, 10, 11, 12])
NONE = np.zeros(0, np.int64), np.zeros(3, np.int32), np.zeros(0, np.int64)
