"""One compact table of several campaigns, from the JSON that ``chaoskit run --json`` writes.

``python table.py FOLDER/*.json``; files are named ``NUMBER.ENGINE.VARIANT.RUN.json``, and the runs
of one variant share a line.
"""

from __future__ import annotations

import json
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

Report = Mapping[str, Any]

HEAD = ("engine", "variant", "trials", "INVALID", "UNKNOWN", "twice", "seconds", "findings: trials")


def main(paths: Sequence[Path]) -> None:
    """Print the table, and then for each variant the diagnoses, the places and the doubts."""
    variants: dict[tuple[str, str], list[Report]] = defaultdict(list)
    for path in sorted(filter(Path.exists, paths)):
        _, engine, variant, _ = path.stem.split(".")
        variants[engine, variant].append(json.loads(path.read_text(encoding="utf-8")))
    if not variants:
        raise SystemExit("no reports: give the files that chaoskit run --json wrote")

    _show([HEAD, *(_row(name, runs) for name, runs in variants.items())])
    print("\ntwice: trials in which an effect happened more than once")
    for (engine, variant), runs in variants.items():
        print(f"\n{engine} {variant}")
        for line in _details(runs):
            print(f"  {line}")


def _row(name: tuple[str, str], runs: Sequence[Report]) -> tuple[str, ...]:
    verdicts = sum((Counter(run["verdicts"]) for run in runs), Counter[str]())
    kinds = _trials(runs, lambda finding: str(finding["kind"]))
    twice = _trials(runs, lambda finding: "twice" if _repeats_an_effect(finding) else "")
    again = max((most for run in runs for most in _finished_again(run).values()), default=0)
    found = ", ".join(f"{kind} {len(points)}" for kind, points in sorted(kinds.items()))
    if again > 1:
        found += f" (up to {again} finished steps at one point)"
    return (
        *name,
        str(sum(run["trials"] for run in runs)),
        str(verdicts["INVALID"]),
        str(verdicts["UNKNOWN"]),
        str(len(twice.get("twice", ()))),
        f"{sum(run['elapsed_s'] for run in runs):.0f}",
        found or "-",
    )


def _details(runs: Sequence[Report]) -> Iterator[str]:
    run = runs[0]
    yield f"points: {run['points']['total']}, by {', '.join(run['mechanisms'])}"
    for label in (_diagnosis, _place):
        for name, trials in sorted(_trials(runs, label).items()):
            yield f"{name}: {len(trials)}"
    if len(runs) > 1:
        yield _stability(runs)
    doubts = Counter(reason for run in runs for reason in run["unknowns"])
    for reason, number in sorted(doubts.items()):
        yield f"UNKNOWN: {reason}: {number}"


def _trials(
    runs: Sequence[Report], label: Callable[[Report], str]
) -> dict[str, set[tuple[int, str]]]:
    """Under each label that a finding gets: in which run, at which schedule. No label, no entry."""
    found: dict[str, set[tuple[int, str]]] = defaultdict(set)
    for number, run in enumerate(runs):
        for finding in run["findings"]:
            if name := label(finding):
                found[name].add((number, finding["schedule"]))
    return found


def _repeats_an_effect(finding: Report) -> bool:
    """Whether an effect happened twice: found as such, or brought about by what was found."""
    return any(
        text.startswith("duplicate_effect") for text in (finding["kind"], *finding["consequences"])
    )


def _diagnosis(finding: Report) -> str:
    diagnosis = finding["diagnosis"]
    missing = diagnosis["missing"] if diagnosis else "no diagnosis"
    return f"{finding['kind']}, {missing}"


def _place(finding: Report) -> str:
    """The point without its number and its thread, which differ from run to run."""
    return "at " + re.sub(r"^[^(]*:|#\d+", "", finding["point"])


def _finished_again(run: Report) -> Counter[str]:
    """How many finished steps were run again at each schedule."""
    return Counter(f["schedule"] for f in run["findings"] if f["kind"] == "redone_step")


def _stability(runs: Sequence[Report]) -> str:
    """At how many points a finished step was run again each time, and at how many sometimes."""
    seen = Counter(schedule for run in runs for schedule in _finished_again(run))
    always = sum(number == len(runs) for number in seen.values())
    return (
        f"a finished step was run again at {len(seen)} points in {len(runs)} runs of the same "
        f"campaign: at {always} of them each time, at {len(seen) - always} only sometimes"
    )


def _show(rows: Sequence[Sequence[str]]) -> None:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = [
            cell.rjust(width) if cell[:1].isdigit() else cell.ljust(width)
            for cell, width in zip(row, widths, strict=True)
        ]
        print("  ".join(cells).rstrip())


if __name__ == "__main__":
    main([Path(word) for word in sys.argv[1:]])
