"""Missing: a word for "resume". No input means go on, an empty one begin; they look alike."""

from __future__ import annotations

import sys

import _shop as shop

from chaoskit import Scenario

PROGRAM = (sys.executable, "{here}/_empty_input_program.py")
scenario = Scenario(
    title="a resume with an empty input begins anew",
    command=(*PROGRAM, '{"month": 7}'),
    resume=(*PROGRAM, "{}"),
    env={"PYTHONPATH": "{here}/.."},
    services=("payments",),
    inputs=lambda seed: shop.customers(seed, 3),
    finds=("silent_restart",),
    cases=("INPUT-4",),
)
