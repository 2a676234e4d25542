"""What the learning rate schedulers of Paddle 2.6.2 give: writes op_packages/optimizer/tests/data/lr_schedules.json.

A case is [class, arguments]; the argument "lr_lambda" stands for 0.95 ** n, and an argument may be a case itself.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from paddle.optimizer import lr

STEPS = 40
METRICS = [
    1.0,
    0.9,
    0.95,
    0.91,
    0.9,
    0.9,
    0.5,
    0.6,
    0.6,
    0.6,
    0.6,
    0.6,
    0.49,
    0.49,
    0.49,
    0.49,
    0.48,
    0.48,
    0.48,
    0.48,
] * 2
CASES: list[list[Any]] = [
    ["NoamDecay", {"d_model": 64, "warmup_steps": 10, "learning_rate": 2.0}],
    ["ExponentialDecay", {"learning_rate": 0.5, "gamma": 0.9}],
    ["NaturalExpDecay", {"learning_rate": 0.5, "gamma": 0.1}],
    ["InverseTimeDecay", {"learning_rate": 0.5, "gamma": 0.1}],
    ["PolynomialDecay", {"learning_rate": 0.5, "decay_steps": 15}],
    ["PolynomialDecay", {"learning_rate": 0.5, "decay_steps": 15, "end_lr": 0.01, "power": 2.0, "cycle": True}],
    ["CosineAnnealingDecay", {"learning_rate": 0.5, "T_max": 12, "eta_min": 0.01}],
    ["PiecewiseDecay", {"boundaries": [3, 10], "values": [0.5, 0.25, 0.125]}],
    ["LinearWarmup", {"learning_rate": 0.5, "warmup_steps": 8, "start_lr": 0.0, "end_lr": 0.5}],
    [
        "LinearWarmup",
        {
            "learning_rate": ["ExponentialDecay", {"learning_rate": 0.5, "gamma": 0.8}],
            "warmup_steps": 8,
            "start_lr": 0.1,
            "end_lr": 0.5,
        },
    ],
    ["StepDecay", {"learning_rate": 0.5, "step_size": 7, "gamma": 0.3}],
    ["MultiStepDecay", {"learning_rate": 0.5, "milestones": [5, 6, 20], "gamma": 0.3}],
    ["LambdaDecay", {"learning_rate": 0.5, "lr_lambda": "0.95 ** n"}],
    ["ReduceOnPlateau", {"learning_rate": 0.5, "patience": 2, "factor": 0.5}],
    ["ReduceOnPlateau", {"learning_rate": 0.5, "patience": 1, "factor": 0.5, "cooldown": 3, "min_lr": 0.1}],
    [
        "ReduceOnPlateau",
        {"learning_rate": 0.5, "mode": "max", "patience": 4, "threshold": 0.05, "threshold_mode": "abs"},
    ],
]


def made(case: list[Any]) -> Any:
    name, arguments = case
    built = {
        key: (lambda n: 0.95**n)
        if key == "lr_lambda"
        else made(value)
        if key == "learning_rate" and isinstance(value, list)
        else value
        for key, value in arguments.items()
    }
    return getattr(lr, name)(**built)


def values(case: list[Any]) -> list[float]:
    scheduler, found = made(case), []
    for step in range(STEPS):
        found.append(float(scheduler()))
        if case[0] == "ReduceOnPlateau":
            scheduler.step(METRICS[step])
        else:
            scheduler.step()
    return found


if __name__ == "__main__":
    target = Path(__file__).parents[2] / "op_packages/optimizer/tests/data/lr_schedules.json"
    cases = [{"case": case, "values": values(case)} for case in CASES]
    target.parent.mkdir(exist_ok=True)
    lines = ",\n".join(json.dumps(case) for case in cases)
    target.write_text(f'{{"metrics": {json.dumps(METRICS)},\n"cases": [\n{lines}\n]}}\n')
