"""Parts of networks for eager calls: `Module` and containers of the core, and the modules that packs bring.

class Net(oprack.nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = oprack.nn.Linear(784, 10)

    def forward(self, x):
        return self.fc(x).relu()
"""

from __future__ import annotations

from oprack.layers.namespace import core_and_packs

_HOMES = {
    "Layer": "oprack.nn.module",
    "LayerDict": "oprack.nn.containers",
    "LayerList": "oprack.nn.containers",
    "Module": "oprack.nn.module",
    "ModuleDict": "oprack.nn.containers",
    "ModuleList": "oprack.nn.containers",
    "Parameter": "oprack.nn.parameter",
    "ParameterList": "oprack.nn.containers",
    "PartUpdates": "oprack.parallel.training.part_updates",
    "Sequential": "oprack.nn.containers",
    "Updates": "oprack.nn.updates",
    "create_parameter": "oprack.nn.parameter",
    "deferred": "oprack.nn.parameter",
    "functional": "oprack.nn",
    "init": "oprack.nn",
    "initializer": "oprack.nn",
}
__getattr__, __dir__ = core_and_packs("nn", _HOMES)
