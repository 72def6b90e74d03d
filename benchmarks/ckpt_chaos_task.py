"""The forty steps as a training command, the kind of program that ckpt-chaos tests.

    python ckpt_chaos_task.py --out DIR --store sqlite    the very task, its SQLite file in DIR
    python ckpt_chaos_task.py --out DIR --store json      the same charges, a JSON checkpoint in DIR
    python ckpt_chaos_task.py --out DIR --charged         what the service was charged, step by step

ckpt-chaos kills where Python itself opens a file for writing, renames or removes one, so it sees
none of what SQLite does. The JSON checkpoint is for its sake: written after every charge to a
temporary file that is synced and then renamed, as its own README recommends. There are no charge
ids in it, because ckpt-chaos compares the file with that of an undisturbed run, byte for byte.

One service answers all trials of a run, so each charge says for which DIR it is.
"""

from __future__ import annotations

import argparse
import json
import os
from collections import Counter
from importlib import import_module
from pathlib import Path
from typing import Any
from urllib.parse import quote

CHECKPOINT = "steps.json"
PAGE = 100


def tag_of(out: Path) -> str:
    """What the charges of a run into ``out`` are marked with: the campaign and the trial."""
    trial = out.resolve().parent
    return f"{trial.parent.name}.{trial.name}"


def _marking(connect: Any, tag: str) -> Any:
    """The client of the task, which marks every charge with the run that it is made for."""

    def connected(url: str) -> Any:
        ask = connect(url)
        return lambda method, path, form: ask(method, path, form | {"metadata[run]": tag})

    return connected


def _with_json(task: Any, connect: Any, file: Path) -> None:
    """Charge, then record: the same order as the task, another file format."""
    ask = connect(os.environ["CHAOSKIT_PAYMENTS_URL"])
    done: list[int] = json.loads(file.read_text()) if file.exists() else []
    for step in range(len(done) + 1, task.STEPS + 1):
        task._charge(ask, step, keyed=False)  # noqa: SLF001 - the very request of the task
        done.append(step)
        fresh = file.with_suffix(".tmp")
        with open(fresh, "w", encoding="utf-8") as opened:
            json.dump(done, opened)
            opened.flush()
            os.fsync(opened.fileno())
        fresh.replace(file)


def _charged(connect: Any, tag: str) -> dict[str, int]:
    """How often each step was charged, by the service's own books."""
    ask = connect(os.environ["CHAOSKIT_PAYMENTS_URL"])
    query = quote(f"metadata['run']:'{tag}'")
    seen: Counter[str] = Counter()
    page = ""
    while True:
        found = ask("GET", f"/v1/charges/search?limit={PAGE}&query={query}{page}", {})
        seen.update(charge["metadata"]["reference"] for charge in found["data"])
        if not found["has_more"]:
            return dict(sorted(seen.items()))
        page = f"&page={quote(found['next_page'])}"


def main() -> None:
    """Run the task, or say what it was charged."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--store", choices=("sqlite", "json"), default="sqlite")
    parser.add_argument("--journal", default="WAL")
    parser.add_argument("--charged", action="store_true")
    given = parser.parse_args()
    task = import_module("forty_cold").forty_steps()
    plain = task._CLIENTS["http.client"]  # noqa: SLF001
    if given.charged:
        print(json.dumps(_charged(plain, tag_of(given.out))))
        return
    given.out.mkdir(parents=True, exist_ok=True)
    marking = _marking(plain, tag_of(given.out))
    if given.store == "json":
        _with_json(task, marking, given.out / CHECKPOINT)
        return
    os.environ["CHAOSKIT_STATE_DIR"] = str(given.out)
    task._CLIENTS["http.client"] = marking  # noqa: SLF001
    task.run(given.journal)


if __name__ == "__main__":
    main()
