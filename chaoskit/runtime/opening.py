"""Opening a run, which is also resuming it: the same call, whatever happened before."""

from __future__ import annotations

import os
from contextlib import closing
from pathlib import Path

from chaoskit.runtime.errors import Misuse, Refused, announced
from chaoskit.runtime.fingerprint import Fingerprint, differences, fingerprint
from chaoskit.runtime.journal import Journal
from chaoskit.runtime.records import RunRecord
from chaoskit.runtime.run import Run
from chaoskit.runtime.store import Store
from chaoskit.runtime.store_file import Durability


def open_run(
    path: str | os.PathLike[str],
    *,
    inputs: object,
    run_id: str = "default",
    durability: Durability = "full",
) -> Run:
    """Start the run, or resume it, or find it finished: the file knows which.

    Args:
        path: the SQLite file of the store, made if there is none; it may hold many runs.
        inputs: what the whole task depends on, any JSON value, None if it has none. A mapping is
            compared per key. Asked for each time, so that leaving it out is never taken for
            "as before".
        run_id: which run in this file.
        durability: ``"full"`` survives power loss, ``"normal"`` any kill of the process.

    Raises:
        Refused: the run was started with other inputs (the message names the fields), or the
            store has another format.
        DamagedStore: the file is not a whole store. An empty file is damage too: a new store is
            made under another name and renamed into place whole, so no crash leaves one.
        FileNotFoundError: the folder does not exist.
        Misuse: inputs or run id have no meaning.
    """
    if not isinstance(run_id, str) or not run_id:
        raise Misuse(f"a run's id is a text that is not empty, not {run_id!r}")
    given = fingerprint(inputs)
    store = Store(Path(path).resolve(), durability)
    try:
        return Run(store, _found_or_added(store, run_id, given))
    except BaseException:
        store.close()
        raise


def settle(
    path: str | os.PathLike[str],
    run_id: str,
    step: str,
    happened: bool,  # noqa: FBT001
    result: object = None,
) -> None:
    """Say whether a step in doubt happened, without the task; the next resume goes on from there.

    Args:
        path: the store.
        run_id: which run in it.
        step: the name that `OutcomeUnknown` gave.
        happened: True: it counts as completed; False: it is called again, with the same key.
        result: what its call would have returned.

    Raises:
        Misuse: there is no such run, or the step is not in doubt.
        FileNotFoundError: there is no store.
        DamagedStore, Refused: as for `open_run`.
    """
    with closing(Store(Path(path).resolve(), create=False)) as store:
        run = store.find_run(run_id)
        if run is None:
            raise Misuse(f"the store {store.path} holds no run {run_id!r}")
        Journal(store, run).settle(step, result, happened=happened)


def _found_or_added(store: Store, run_id: str, given: Fingerprint) -> RunRecord:
    run = store.find_run(run_id)
    if run is None:
        fresh = RunRecord(run_id=run_id, uid=os.urandom(16).hex(), inputs=given)
        store.add_run(fresh)
        run = store.find_run(run_id) or fresh
    if found := differences(run.inputs, given):
        raise announced(Refused(_other_inputs(run, found)))
    return run


def _other_inputs(run: RunRecord, found: str) -> str:
    if run.finished:
        return (
            f"run {run.run_id!r} is finished, and had other inputs: {found}. Give the new inputs "
            "a run_id of their own"
        )
    return (
        f"run {run.run_id!r} was started with other inputs: {found}. Resume it with those, or "
        "start another run with another run_id"
    )
