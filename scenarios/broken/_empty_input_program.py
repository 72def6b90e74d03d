"""The program of `empty_input_restarts.py`: charge by key; a given input begins a new run."""

from __future__ import annotations

import json
import sys

import _shop as shop


def main(given: object) -> None:
    """Go on from where it stopped, unless there is an input."""
    services = shop.Shop()
    checkpoint = shop.Checkpoint()
    if given is not None:  # `if given:` is what the other half of the users would need
        checkpoint.save(done=0)
    buyers = shop.inputs()
    for number in range(checkpoint.values["done"], len(buyers)):
        services.charge(buyers[number], key=f"order-{number}")
        checkpoint.save(done=number + 1)


main(json.loads(sys.argv[1]))
